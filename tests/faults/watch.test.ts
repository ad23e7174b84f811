import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { FileWatcher, Sandbox } from 'islet'
import { until } from '../coming-from/until.ts'
import { slotOf } from '../support/leftovers.ts'
import type { TestServer } from '../support/server.ts'
import { killCells, withServer } from './crash.ts'

async function watched(
  server: TestServer,
): Promise<{ sandbox: Sandbox; watcher: FileWatcher; seen: string[] }> {
  const sandbox = await server.islet().sandboxes.create()
  await sandbox.runCommand('mkdir -p watched/node_modules doomed')
  const watcher = await sandbox.watcher.create('watched', { ignored: ['node_modules'], includeContent: true })
  const seen: string[] = []
  watcher.on('change', ({ event, path, content }) => void seen.push([event, path, content].join(' ')))
  watcher.on('overflow', () => void seen.push('overflow'))
  watcher.on('error', (error) => void seen.push(`error ${error}`))
  return { sandbox, watcher, seen }
}

/** The same watcher afterwards: it got `overflow`, and reports new changes. */
async function goesOn({ sandbox, watcher, seen }: Awaited<ReturnType<typeof watched>>): Promise<void> {
  await until(() => seen.includes('overflow'))
  const info = await sandbox.watcher.retrieve(watcher.getId())
  assert.deepEqual([info.status, info.ignored, info.includeContent], ['active', ['node_modules'], true])
  await sandbox.runCommand('cd watched; echo unseen > node_modules/x; echo text > part; mv part after')
  // In a later round the file is there already.
  const told = ['add', 'change'].map((event) => `${event} ${watcher.getPath()}/after text\n`)
  await until(() => seen.some((line) => told.includes(line)))
  assert.ok(!seen.some((line) => line.includes('node_modules') || line.startsWith('error')), seen.join())
}

test('a watcher and its client outlive a server that is killed', async () => {
  await withServer(async (server) => {
    const all = await watched(server)
    const doomed = await all.sandbox.watcher.create('doomed')
    const errors: unknown[] = []
    doomed.on('error', (error) => void errors.push(error))
    for (let round = 0; round < 3; round++) {
      await server.kill()
      await server.start()
      all.seen.length = 0
      await goesOn(all)
    }
    await all.sandbox.runCommand('rm -r doomed')
    await until(() => errors.length > 0)
    assert.match((await all.sandbox.watcher.retrieve(doomed.getId())).reason ?? '', /doomed is gone/)
    await server.kill()
    await server.start()
    assert.equal((await all.sandbox.watcher.retrieve(doomed.getId())).status, 'stopped')
    assert.equal((await all.sandbox.watcher.list()).length, 2)
    await all.watcher.destroy()
  })
})

test('after a reboot watchers watch again', async () => {
  await withServer(async (server) => {
    const all = await watched(server)
    await server.kill()
    killCells(slotOf(server.dataDir)!)
    await server.start()
    await goesOn(all)
    await all.watcher.destroy()
  })
})

test('a sandbox that fails ends its watchers with an error', async () => {
  await withServer(async (server) => {
    const { sandbox, watcher, seen } = await watched(server)
    killCells(slotOf(server.dataDir)!, 1)
    await until(() => seen.some((line) => line.startsWith('error')))
    assert.equal(watcher.isActive(), false)
    assert.deepEqual(await sandbox.watcher.list(), [])
  })
})
