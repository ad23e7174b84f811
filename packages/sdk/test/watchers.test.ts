import assert from 'node:assert/strict'
import { mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { startTestApi, TEST_KEY, type TestApi, until } from '../../server/test/support/server.ts'
import { Client } from '../src/client/client.ts'
import type { FileWatcher } from '../src/index.ts'
import { Sandbox } from '../src/index.ts'
import { startProxy } from './proxy.ts'

const apiKey = TEST_KEY
let api: TestApi
let sandbox: Sandbox
let workdir: string
before(async () => {
  api = await startTestApi()
  sandbox = await Sandbox.create({ url: api.url, apiKey })
  workdir = (await sandbox.getInfo()).workdir
})
after(() => api[Symbol.asyncDispose]())

function fresh(name: string): string {
  mkdirSync(join(workdir, name))
  return join(workdir, name)
}

/** Every event as a word: the change's kind and name, or the event's own name. */
function record(watcher: FileWatcher): string[] {
  const seen: string[] = []
  watcher.on(
    'change',
    ({ event, path }) => void seen.push(`${event} ${path.slice(path.lastIndexOf('/') + 1)}`),
  )
  watcher.on('overflow', () => void seen.push('overflow'))
  watcher.on('destroyed', () => void seen.push('destroyed'))
  watcher.on('error', (error) => void seen.push(`error ${(error as { code: string }).code}`))
  return seen
}

test('a file written right after create is seen, whenever the handler comes', async () => {
  for (let round = 0; round < 20; round++) {
    const directory = fresh(`at-once-${round}`)
    const watcher = await sandbox.watcher.create(directory)
    await sandbox.files.write(join(directory, 'file'), 'x')
    const seen = record(watcher)
    await until(() => seen.includes('add file'))
    await watcher.destroy()
  }
})

test('a watcher has its id, path, status and channel', async () => {
  const directory = fresh('says')
  const ignored = ['*.test.ts', 'node_modules']
  const watcher = await sandbox.watcher.create('says', { includeContent: true, ignored, encoding: 'base64' })
  assert.match(watcher.getId(), /^wtc-/)
  assert.equal(watcher.getPath(), directory)
  assert.equal(watcher.getStatus(), 'active')
  assert.equal(watcher.getChannel(), `/v1/sandboxes/${sandbox.id}/watchers/${watcher.getId()}/events`)
  assert.ok(watcher.isActive() && watcher.isIncludingContent())
  assert.deepEqual(watcher.getIgnoredPatterns(), ignored)
  const info = await sandbox.watcher.retrieve(watcher.getId())
  assert.deepEqual([info.path, info.encoding, info.status], [directory, 'base64', 'active'])
  assert.deepEqual(
    (await sandbox.watcher.list()).map(({ id }) => id),
    [watcher.getId()],
  )
  const changes: unknown[] = []
  watcher.on('change', (change) => void changes.push(change))
  writeFileSync(join(workdir, 'part'), 'hi')
  renameSync(join(workdir, 'part'), join(directory, 'file'))
  await until(() => changes.length > 0)
  assert.deepEqual(changes, [{ event: 'add', path: join(directory, 'file'), content: 'aGk=' }])
  await watcher.destroy()
  assert.deepEqual(await sandbox.watcher.list(), [])
})

test('handlers may be many, one that throws stops no other, and off takes one away', async (t) => {
  const directory = fresh('handlers')
  const watcher = await sandbox.watcher.create(directory)
  const told = t.mock.method(console, 'error', () => {})
  const calls: string[] = []
  const second = () => void calls.push('second')
  watcher.on('change', () => {
    calls.push('first')
    throw new Error('a handler of the test')
  })
  watcher.on('change', second)
  watcher.on('change', () => void calls.push('third'))
  mkdirSync(join(directory, 'a'))
  await until(() => calls.length === 3)
  assert.deepEqual(calls, ['first', 'second', 'third'])
  assert.equal(told.mock.callCount(), 1)
  watcher.off('change', second)
  watcher.off('change', () => {})
  mkdirSync(join(directory, 'b'))
  await until(() => calls.length === 5)
  assert.deepEqual(calls.slice(3), ['first', 'third'])
  await watcher.destroy()
})

test('destroyed is heard once by every client, however it was destroyed', async () => {
  const directory = fresh('destroyed')
  const ways: ((watcher: FileWatcher, other: FileWatcher) => Promise<void>)[] = [
    (watcher) => watcher.destroy(),
    (watcher) => sandbox.watcher.destroy(watcher.getId()),
    (_watcher, other) => other.destroy(),
  ]
  for (const destroy of ways) {
    const watcher = await sandbox.watcher.create(directory)
    const other = await sandbox.watcher.connect(watcher.getId())
    const all = [watcher, other].map(record)
    await destroy(watcher, other)
    for (const seen of all) await until(() => seen.length > 0)
    assert.deepEqual(all, [['destroyed'], ['destroyed']])
    assert.deepEqual([watcher.getStatus(), watcher.isActive()], ['stopped', false])
    await assert.rejects(watcher.destroy(), { code: 'watcher_not_found' })
    await assert.rejects(sandbox.watcher.destroy(watcher.getId()), { code: 'watcher_not_found' })
    await assert.rejects(sandbox.watcher.connect(watcher.getId()), { code: 'watcher_not_found' })
    assert.deepEqual(all, [['destroyed'], ['destroyed']])
  }
})

test('another client follows the same watcher', async () => {
  const directory = fresh('follow')
  const watcher = await sandbox.watcher.create(directory, { ignored: ['x'] })
  const other = await (await Sandbox.connect(sandbox.id, { url: api.url, apiKey })).watcher.connect(
    watcher.getId(),
  )
  assert.deepEqual(other.getIgnoredPatterns(), ['x'])
  const all = [watcher, other].map(record)
  mkdirSync(join(directory, 'dir'))
  for (const seen of all) await until(() => seen.includes('addDir dir'))
  await other.destroy()
})

test('a path that goes away is an error, and the watcher is stopped', async () => {
  const directory = fresh('gone')
  const watcher = await sandbox.watcher.create(directory)
  const seen = record(watcher)
  rmSync(directory, { recursive: true })
  await until(() => seen.includes('error file_not_found'))
  assert.equal(watcher.getStatus(), 'stopped')
  assert.match((await sandbox.watcher.retrieve(watcher.getId())).reason ?? '', /is gone/)
  await watcher.destroy()
  await assert.rejects(sandbox.watcher.create('gone'), { code: 'file_not_found' })
})

test('a connection that breaks is made again, and that events may be missing is told', async () => {
  await using proxy = await startProxy(api.url)
  const through = new Sandbox(new Client({ url: proxy.url, apiKey }), await sandbox.getInfo())
  const directory = fresh('broken')
  const watcher = await through.watcher.create(directory)
  const seen = record(watcher)
  proxy.cutSockets()
  await until(() => seen.includes('overflow'))
  mkdirSync(join(directory, 'after'))
  await until(() => seen.includes('addDir after'))

  const held = proxy.hold()
  proxy.cutSockets()
  await held.reached
  await sandbox.watcher.destroy(watcher.getId())
  held.release()
  await until(() => seen.includes('destroyed'))
  assert.deepEqual(
    seen.filter((word) => word.startsWith('error')),
    [],
  )
})

test('creating is given up with an AbortError and leaves no watcher', async () => {
  await assert.rejects(sandbox.watcher.create('.', { signal: AbortSignal.abort() }), { name: 'AbortError' })
  assert.deepEqual(
    (await sandbox.watcher.list()).filter(({ path }) => path === workdir),
    [],
  )
})

test('a sandbox that is killed takes its watchers along', async () => {
  const other = await Sandbox.create({ url: api.url, apiKey })
  const watcher = await other.watcher.create('.')
  const seen = record(watcher)
  await other.kill()
  await until(() => seen.includes('destroyed'))
  assert.equal(watcher.isActive(), false)
})
