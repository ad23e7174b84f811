// A disk that a sandbox or another program fills. The server's data directory is on a small one.
import assert from 'node:assert/strict'
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { SandboxEvent } from '@islet/contract'
import { hasCode, type Sandbox } from 'islet'
import { until } from '../coming-from/until.ts'
import { TestServer, WITHOUT_WARM } from '../support/server.ts'
import { onDisk, SmallDisk } from '../support/small-disk.ts'

const DISK_MIB = 640
const env = { ...WITHOUT_WARM, ISLET_LOG_LEVEL: 'info' }
/** Never ends. It may be faster than the pause and meet the end of the disk; then it gives back a little, and goes on. */
const FILL =
  'i=0; while :; do head -c 4M /dev/zero > /f-$i || rm -f /f-$i /f-$((i-1)); i=$((i+1)); done 2>/dev/null'
/** More than the disk has while another program takes the rest of it. */
const WRITE_350_MIB =
  'i=0; while [ $i -lt 35 ]; do dd if=/dev/zero of=/f-$i bs=1M count=10 2>/dev/null && i=$((i+1)); sleep 0.05; done; echo done'

interface Scene {
  disk: SmallDisk
  server: TestServer
}

async function onSmallDisk(
  work: (scene: Scene) => Promise<void>,
  options: { leaveMib?: number; env?: Record<string, string> } = {},
): Promise<void> {
  using disk = new SmallDisk(DISK_MIB)
  if (options.leaveMib) disk.fill(options.leaveMib)
  const server = await onDisk(disk, () => TestServer.start({ env: { ...env, ...options.env } }))
  try {
    await work({ disk, server })
  } finally {
    disk.empty()
    await server[Symbol.asyncDispose]()
  }
}

const make = (server: TestServer): Promise<Sandbox> =>
  server.islet().sandboxes.create({ runtime: 'host', user: 'root' })

async function answers(sandbox: Sandbox): Promise<void> {
  assert.equal((await sandbox.exec.run('echo here')).stdout, 'here\n')
}

const statusOf = async (server: TestServer, { id }: Sandbox): Promise<string> =>
  (await server.islet().sandboxes.get(id)).status

async function eventsOf(server: TestServer, { id }: Sandbox): Promise<string[]> {
  const { events } = (await (await server.fetch(`/v1/sandboxes/${id}/events?limit=1000`)).json()) as {
    events: SandboxEvent[]
  }
  return events.map(({ type }) => type)
}

function assertReserved({ dataDir }: TestServer): void {
  const { size, blocks } = statSync(join(dataDir, 'pool.img'))
  assert.ok(blocks * 512 >= size, 'every block of the pool is reserved')
}

for (const storage of ['auto', 'copy'])
  test(`storage ${storage}: a sandbox that fills the disk is paused, its neighbour answers, and deleting it frees all space`, async () => {
    await onSmallDisk(
      async ({ server }) => {
        const [neighbour, culprit] = [await make(server), await make(server)]
        await culprit.exec.spawn(FILL)
        await until(async () => {
          await answers(neighbour)
          return (await statusOf(server, culprit)) === 'paused'
        })
        assert.ok((await eventsOf(server, culprit)).includes('disk_low'))
        await assert.rejects(make(server), { code: 'disk_low' })
        await assert.rejects(culprit.exec.run('true'), { code: 'disk_low' })
        assert.equal((await server.fetch('/ready')).status, 503)
        if (storage === 'auto') assertReserved(server)
        await answers(neighbour)
        await server.islet().sandboxes.delete(culprit.id)
        // It may be low once more while the filesystem cleans up.
        await until(async () => {
          try {
            await answers(await make(server))
            await neighbour.files.write('/file', 'written')
            return true
          } catch (error) {
            if (!hasCode(error, 'disk_low')) throw error
            return false
          }
        })
      },
      { env: { ISLET_STORAGE: storage } },
    )
  })

test('a large sandbox that is woken while the disk is low is not mistaken for one that fills it', async () => {
  await onSmallDisk(async ({ server }) => {
    const [sleeper, culprit] = [await make(server), await make(server)]
    await sleeper.exec.run('head -c 20M /dev/zero > /held')
    await sleeper.pause()
    await culprit.exec.spawn(FILL)
    await until(async () => (await statusOf(server, culprit)) === 'paused')
    for (let n = 0; n < 20; n++) {
      await answers(sleeper)
      await sleep(50)
    }
    assert.equal(await statusOf(server, sleeper), 'running')
  })
})

test('a server that is killed while the disk is full starts again, with all its sandboxes', async () => {
  await onSmallDisk(async ({ disk, server }) => {
    const [neighbour, culprit] = [await make(server), await make(server)]
    await neighbour.files.write('/kept', 'kept')
    await culprit.exec.spawn(FILL)
    await until(async () => (await statusOf(server, culprit)) === 'paused')
    disk.fill()
    await answers(neighbour)
    await server.kill()
    disk.fill()
    await server.start()
    await answers(await server.islet().sandboxes.connect(neighbour.id))
    assert.equal(await statusOf(server, culprit), 'paused')
    await assert.rejects(make(server), { code: 'disk_low' })
    await server.islet().sandboxes.delete(culprit.id)
    await answers(await server.islet().sandboxes.connect(neighbour.id))
    disk.empty()
    await until(async () => (await server.fetch('/ready')).status === 200)
    const again = await server.islet().sandboxes.connect(neighbour.id)
    assert.equal(await again.files.read('/kept'), 'kept')
    await answers(await make(server))
  })
})

test('sandboxes that write while another program takes all of the disk go on when it is gone', async () => {
  await onSmallDisk(
    async ({ disk, server }) => {
      const [neighbour, writer] = [await make(server), await make(server)]
      const writing = await writer.exec.spawn(WRITE_350_MIB)
      await until(async () => {
        await answers(neighbour)
        return (await statusOf(server, writer)) === 'paused'
      })
      disk.fill()
      await answers(neighbour)
      assertReserved(server)
      disk.empty()
      await until(async () => (await writer.exec.get(writing.id)).status !== 'running')
      assert.equal((await writer.exec.output(writing.id)).stdout, 'done\n')
      assert.ok((await eventsOf(server, writer)).includes('disk_ok'))
      await answers(neighbour)
    },
    { leaveMib: 350 },
  )
})
