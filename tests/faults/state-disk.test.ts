// Saved states on a disk that is full, that loses layers, or that loses unsynced data.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import type { Sandbox } from '@islet/contract'
import { until } from '../coming-from/until.ts'
import { slotOf } from '../support/leftovers.ts'
import { needs } from '../support/programs.ts'
import { TestServer, WITHOUT_WARM } from '../support/server.ts'
import { killCells, withServer } from './crash.ts'
import { audit, layersOf } from './state-audit.ts'
import {
  call,
  change,
  checkpoint,
  checkpoints,
  fill,
  look,
  Refused,
  restore,
  statusOf,
  unless,
} from './state-world.ts'

needs('btrfs')

const env = { ISLET_POOL_SIZE: '256Mi', ISLET_LOG_LEVEL: 'warn', ...WITHOUT_WARM }

test('on a full pool every call succeeds or says so, nothing is half done, and deleting makes room', async () => {
  await withServer(
    async (server) => {
      const islet = server.islet()
      const id = await fill(islet, 'small')
      const saved = await checkpoint(server, id, 'saved')
      const before = await look(islet, id)
      const hog = await islet.sandboxes.create({ runtime: 'host', user: 'root' })
      // First large files, then small ones, until nothing more goes in.
      const fillUp = `i=0; head -c 1G /dev/zero | tr '\\\\0' x > /big 2>/dev/null
        while [ $i -lt 20000 ] && echo small > /fill-$i; do i=$((i+1)); done 2>/dev/null; sync; df /; true`
      await hog.exec.spawn(['sh', '-c', fillUp])
      // Stopped by the server, or by a full pool that it filled between two looks.
      const hasEnded = async () => (await hog.exec.list({ status: 'running' })).length === 0
      await until(async () => (await statusOf(server, hog.id)) === 'paused' || (await hasEnded()))

      const outcomes: string[] = []
      const attempt = async (what: string, work: () => Promise<unknown>) => {
        const outcome = await work().then(
          () => 'done',
          (error: unknown) => (error instanceof Refused ? error.code : String(error)),
        )
        outcomes.push(`${what}: ${outcome}`)
        assert.ok(
          ['done', 'disk_low', 'server_disk_full', 'sandbox_disk_full'].includes(outcome),
          `${what}: ${outcome}`,
        )
        return outcome === 'done'
      }
      for (let round = 0; round < 3; round++) {
        await attempt('checkpoint', () => checkpoint(server, id, `full-${round}`))
        await attempt('fork', () => forkOne(server, id))
        await attempt('create', () => call(server, 'POST', '/sandboxes', { runtime: 'host' }))
        await attempt('create from', () => call(server, 'POST', `/checkpoints/${saved.id}/sandboxes`, {}))
        await attempt('restore', () => restore(server, id, saved.id))
        await attempt('resume', () => call(server, 'POST', `/sandboxes/${hog.id}/resume`))
      }
      assert.equal(await look(islet, id), before, `${outcomes}`)
      await audit(server)

      await islet.sandboxes.delete(hog.id)
      // The filesystem gives back what was deleted a little later.
      const again = await whenThereIsRoom(() => checkpoint(server, id, 'again'))
      const writer = await islet.sandboxes.connect(id)
      const write = 'head -c 32M /dev/zero > /probe && sync; wrote=$?; rm -f /probe; exit $wrote'
      await whenThereIsRoom(async () => ((await writer.exec.run(write)).exitCode === 0 ? true : undefined))
      await whenThereIsRoom(() => change(islet, id, 'away').then(() => true))
      await whenThereIsRoom(() => restore(server, id, again.id))
      assert.equal(await look(islet, id), before)
      await whenThereIsRoom(() => restore(server, id, saved.id))
      assert.equal(await look(islet, id), before)
      await audit(server)
    },
    { env },
  )
})

/** While the filesystem removes deleted files it reserves space, which makes such a small pool low once more. */
async function whenThereIsRoom<T>(work: () => Promise<T | undefined>): Promise<T> {
  let done: T | undefined
  await until(async () => {
    done = await work().catch(unless('disk_low'))
    return done !== undefined
  })
  return done!
}

for (const storage of ['btrfs', 'copy'] as const) {
  test(`a checkpoint whose layer was removed by hand (${storage}) says so before anything is ended, and can be deleted`, async () => {
    await withServer((server) => loseLayer(server, storage), { env: { ...env, ISLET_STORAGE: storage } })
  })
}

async function loseLayer(server: TestServer, storage: 'btrfs' | 'copy'): Promise<void> {
  const id = await fill(server.islet(), 'kept')
  const kept = await checkpoint(server, id, 'kept')
  const before = await look(server.islet(), id)
  const layers = layersOf(server)
  const doomed = await checkpoint(server, id, 'doomed')
  const [layer] = layersOf(server).filter((name) => !layers.includes(name))
  const child = await call<{ id: string }>(server, 'POST', `/checkpoints/${doomed.id}/sandboxes`, {})
  await call(server, 'POST', '/snapshots', { checkpoint: doomed.id, tag: 'doomed' })
  const sandbox = await server.islet().sandboxes.connect(id)
  const running = await sandbox.exec.spawn('sleep 1000')
  const path = join(server.dataDir, 'pool/layers', layer!)
  if (storage === 'btrfs') execFileSync('btrfs', ['subvolume', 'delete', path])
  else rmSync(path, { recursive: true })

  const damaged = { code: 'state_damaged' }
  for (let round = 0; round < 2; round++) {
    await assert.rejects(restore(server, id, doomed.id), damaged)
    await assert.rejects(call(server, 'POST', `/checkpoints/${doomed.id}/sandboxes`, {}), damaged)
    await assert.rejects(call(server, 'POST', '/sandboxes', { snapshot: 'doomed' }), damaged)
    assert.equal((await sandbox.exec.get(running.id)).status, 'running', 'what runs in it goes on')
    assert.equal(await look(server.islet(), id), before)
    await server.kill()
    await server.start()
  }

  // After a reboot a child that stood on that layer has failed and says why; one that has a clone of it runs.
  await server.kill()
  killCells(slotOf(server.dataDir)!)
  await server.start()
  assert.equal(await look(server.islet(), id), before)
  if (storage === 'btrfs') assert.equal(await look(server.islet(), child.id), before)
  else {
    await assert.rejects(call(server, 'POST', `/sandboxes/${child.id}/exec`, { command: 'true' }))
    const failed = await call<Sandbox>(server, 'GET', `/sandboxes/${child.id}`)
    assert.equal(failed.status, 'failed')
    assert.match(failed.reason!, new RegExp(layer!))
  }

  await call(server, 'DELETE', `/sandboxes/${child.id}`)
  await call(server, 'DELETE', '/snapshots/doomed')
  await call(server, 'DELETE', `/sandboxes/${id}/checkpoints/${doomed.id}`)
  await change(server.islet(), id, 'away')
  await restore(server, id, kept.id)
  assert.equal(await look(server.islet(), id), before)
  await audit(server)
}

test('an acknowledged checkpoint survives a power cut, with files that nobody had synced', async () => {
  const copy = new TestServer({ env })
  const wanted: { id: string; checkpoint: string; state: string }[] = []
  try {
    await withServer(
      async (server) => {
        const id = await fill(server.islet(), 'first')
        for (const name of ['one', 'two']) {
          await change(server.islet(), id, name)
          const state = await look(server.islet(), id)
          wanted.push({ id, checkpoint: (await checkpoint(server, id, name)).id, state })
          await restore(server, id, wanted.at(-1)!.checkpoint)
        }
        // cp refuses to copy a file over a hard link to it, and test servers share their image so.
        rmSync(join(copy.dataDir, 'images'), { recursive: true, force: true })
        // The content of a disk that loses power now: data that the pool's filesystem has not written is not in its file.
        process.kill(server.pid, 'SIGSTOP')
        try {
          for (const name of ['islet.db-wal', 'islet.db', 'pool.img', 'images', 'key', 'token-key'])
            execFileSync('cp', ['-a', '--sparse=always', join(server.dataDir, name), copy.dataDir])
        } finally {
          process.kill(server.pid, 'SIGCONT')
        }
      },
      { env },
    )
    await copy.start()
    for (const { id, checkpoint: saved, state } of wanted) {
      assert.ok((await checkpoints(copy, id)).some((info) => info.id === saved))
      await restore(copy, id, saved)
      assert.equal(await look(copy.islet(), id), state)
      assert.equal(await statusOf(copy, id), 'running')
    }
    await audit(copy)
  } finally {
    await copy[Symbol.asyncDispose]()
  }
})

async function forkOne(server: TestServer, id: string): Promise<void> {
  const { forks } = await call<{ forks: { ok: boolean; error?: { code: string; message: string } }[] }>(
    server,
    'POST',
    `/sandboxes/${id}/fork`,
    {},
  )
  const [made] = forks
  if (!made?.ok) throw new Refused({ error: made!.error } as never)
}
