import assert from 'node:assert/strict'
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { newId, type WatcherMessage } from '@islet/contract'
import type { WatcherRecord } from '../../db/watchers.ts'
import { openGuest } from '../../guest/testing.ts'
import { newQueue, Watching } from './watching.ts'

interface Given {
  reason: string | null
  ignored: string[]
}

async function watch(t: TestContext, { reason = null, ignored = [] }: Partial<Given> = {}) {
  const { link, directory, child } = await openGuest(t)
  const path = join(directory, 'watched')
  mkdirSync(path)
  const stopped: string[] = []
  const record = {
    id: newId('watcher'),
    sandboxId: newId('sandbox'),
    path,
    includeContent: false,
    ignored,
    encoding: 'raw',
    reason,
    createdAt: 0,
  } satisfies WatcherRecord
  const watching = new Watching(record, {
    guest: link,
    onStopped: (why) => void stopped.push(why),
    onBug: (error) => assert.fail(`${error}`),
  })
  t.after(() => watching.close())
  return { link, child, path, watching, stopped }
}

async function take(messages: AsyncIterable<WatcherMessage>, isLast: (message: WatcherMessage) => boolean) {
  const taken: WatcherMessage[] = []
  for await (const message of messages) {
    taken.push(message)
    if (isLast(message)) return taken
  }
  return taken
}

const isAdd = (name: string) => (message: WatcherMessage) =>
  message.type === 'change' && message.event === 'add' && message.path.endsWith(`/${name}`)

test('after the guest reconnects the path is watched again, and clients get an overflow', async (t) => {
  const { link, path, watching } = await watch(t)
  await watching.open(undefined)
  const { messages } = await watching.connect()
  link.hangup(0)
  const taken = await take(messages, ({ type }) => type === 'overflow')
  assert.deepEqual(taken, [{ type: 'overflow' }])
  const { messages: second } = await watching.connect()
  writeFileSync(join(path, 'after'), '')
  await take(second, isAdd('after'))
})

test('a path that is removed while the guest is not connected stops the watcher with a reason', async (t) => {
  const { link, path, watching, stopped } = await watch(t)
  await watching.open(undefined)
  const { messages } = await watching.connect()
  link.hangup(200)
  rmSync(path, { recursive: true })
  await assert.rejects(
    take(messages, () => false),
    { code: 'file_not_found' },
  )
  assert.match(stopped[0] ?? '', /watched is gone/)
})

test('a watcher from before a restart begins with an overflow; a stopped one stays stopped', async (t) => {
  const { path, watching } = await watch(t)
  watching.resume()
  const { messages } = await watching.connect()
  writeFileSync(join(path, 'file'), '')
  const taken = await take(messages, isAdd('file'))
  assert.equal(taken[0]?.type, 'overflow')

  const old = await watch(t, { reason: 'It was too much.' })
  old.watching.resume()
  const { messages: none } = await old.watching.connect()
  await assert.rejects(
    take(none, () => true),
    { code: 'invalid_state', message: /It was too much/ },
  )
})

test('held messages are not lost with a client that never read', async (t) => {
  const { path, watching } = await watch(t)
  await watching.open(undefined)
  writeFileSync(join(path, 'early'), '')
  const { close } = await watching.connect()
  close()
  const { messages } = await watching.connect()
  await take(messages, isAdd('early'))
})

test('a directory that is ignored by its name is not watched at all', async (t) => {
  const { path, watching, child } = await watch(t, { ignored: ['{node_modules,.git}', 'src/skipped'] })
  for (const name of ['node_modules/a/b', '.git/objects', 'src/kept'])
    mkdirSync(join(path, name), { recursive: true })
  await watching.open(undefined)
  const files = readdirSync(`/proc/${child.pid}/fdinfo`)
  const infos = files.map((fd) => readFileSync(`/proc/${child.pid}/fdinfo/${fd}`, 'utf8'))
  assert.equal(infos.join('').match(/^inotify wd:/gm)?.length, 3)
})

test('opening is given up when the caller goes away', async (t) => {
  const { watching } = await watch(t)
  const controller = new AbortController()
  const opening = watching.open(controller.signal)
  controller.abort()
  await assert.rejects(opening, { name: 'AbortError' })
})

test('clients beyond the limit are refused', async (t) => {
  const { watching } = await watch(t)
  await watching.open(undefined)
  const clients = await Promise.all(Array.from({ length: 64 }, () => watching.connect()))
  await assert.rejects(watching.connect(), { code: 'limit_exceeded' })
  clients[0]!.close()
  await watching.connect()
})

const change = (n: number, content = ''): WatcherMessage => ({
  type: 'change',
  event: 'add',
  path: `/${n}`,
  content,
})

test('what waits for a slow reader is bounded in number and size, and becomes one overflow', async () => {
  for (const [count, content] of [
    [50_000, ''],
    [200, 'x'.repeat(1_000_000)],
  ] as const) {
    const queue = newQueue()
    for (let n = 0; n < count; n++) queue.push(change(n, content))
    queue.end()
    const taken = await take(queue, () => false)
    assert.equal(taken.filter(({ type }) => type === 'overflow').length, 1)
    assert.ok(taken.length < 16_400)
  }
})

test('a reader that pauses in the middle loses only what came too late', async () => {
  const queue = newQueue()
  for (let n = 0; n < 16_384; n++) queue.push(change(n))
  const reader = queue[Symbol.asyncIterator]()
  assert.deepEqual((await reader.next()).value, change(0))
  for (let n = 0; n < 1000; n++) queue.push(change(-1))
  for (let n = 1; n < 16_384; n++) assert.deepEqual((await reader.next()).value, change(n))
  assert.deepEqual((await reader.next()).value, { type: 'overflow' })
  const next = reader.next()
  await setImmediate()
  queue.push(change(7))
  assert.deepEqual((await next).value, change(7))
  queue.close()
  assert.equal((await reader.next()).done, true)
})
