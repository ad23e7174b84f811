import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { startTestApi, TEST_KEY, type TestApi } from '../../server/test/support/server.ts'
import { hasCode, Islet, Sandbox, type SandboxEvent } from '../src/index.ts'
import { type Fault, startProxy } from './proxy.ts'

let api: TestApi
let islet: Islet
before(async () => {
  api = await startTestApi()
  islet = new Islet({ url: api.url, apiKey: TEST_KEY })
})
after(() => api[Symbol.asyncDispose]())

async function lived(changes = 20): Promise<Sandbox> {
  const sandbox = await islet.sandboxes.create()
  for (let count = 1; count <= changes; count++) await sandbox.setTimeout(count * 1000)
  return sandbox
}

async function all(events: AsyncIterable<SandboxEvent>): Promise<SandboxEvent[]> {
  const found: SandboxEvent[] = []
  for await (const event of events) found.push(event)
  return found
}

test('events are listed by limit, direction, place, time and type', async () => {
  const { events } = await lived(3)
  const { events: found, more } = await events.list({ limit: 2, direction: 'asc' })
  assert.deepEqual([found.map(({ type }) => type), more], [['created', 'started'], true])
  const after = await events.list({ since: found[1]!.id, direction: 'asc' })
  assert.deepEqual(
    after.events.map(({ data }) => data.idleMs),
    [1000, 2000, 3000],
  )
  assert.equal((await events.list({ until: found[1]!.id })).events[0]?.type, 'created')
  assert.equal((await events.list({ types: ['created', 'started'] })).events.length, 2)
  assert.equal((await events.list({ since: new Date(0) })).events.length, 5)
  assert.equal((await events.list({ until: new Date(0) })).events.length, 0)
})

test('follow gives past events, then new events, until the sandbox is gone', async () => {
  const sandbox = await lived(1)
  const seen: string[] = []
  for await (const { type } of sandbox.events.follow()) {
    seen.push(type)
    if (type === 'timeout.changed') void sandbox.kill()
  }
  assert.deepEqual(seen, ['created', 'started', 'timeout.changed', 'stopped'])
  assert.deepEqual(
    await all(islet.events(sandbox.id).follow({ types: ['stopped'], since: '0' })).then(typesOf),
    ['stopped'],
  )
})

const typesOf = (events: readonly SandboxEvent[]) => events.map(({ type }) => type)

test('a stream that breaks, cleanly or not, continues: no event is missed and none comes twice', async () => {
  const sandbox = await lived(30)
  const { events: expected } = await sandbox.events.list({ direction: 'asc', limit: 1000 })
  const faults: Fault[] = [
    { cut: 'body', afterBytes: 700 },
    { cut: 'body cleanly', afterBytes: 1000 },
    { cut: 'request' },
    { status: 503, body: 'a gateway' },
    { cut: 'body', afterBytes: 10 },
    { cut: 'body cleanly', afterBytes: 2011 },
  ]
  await using proxy = await startProxy(api.url, ({ query }, count) =>
    query.get('follow') ? faults[count - 1] : undefined,
  )
  const through = new Islet({ url: proxy.url, apiKey: TEST_KEY }).events(sandbox.id)
  const seen: SandboxEvent[] = []
  for await (const event of through.follow()) {
    seen.push(event)
    if (seen.length === expected.length) await sandbox.kill()
  }
  assert.deepEqual(seen.slice(0, -1), expected)
  assert.equal(seen.at(-1)!.type, 'stopped')
  assert.ok(proxy.asked.length > faults.length)
  assert.equal(proxy.asked[0]!.headers['last-event-id'], undefined)
  assert.ok(proxy.asked.at(-1)!.headers['last-event-id'])
})

test('following ends by a break of the loop, by a signal with an AbortError, and for no sandbox with its error', async () => {
  const sandbox = await lived(0)
  for await (const _ of sandbox.events.follow()) break
  const controller = new AbortController()
  const following = all(sandbox.events.follow({ signal: controller.signal }))
  controller.abort()
  await assert.rejects(following, { name: 'AbortError' })
  await assert.rejects(all(sandbox.events.follow({ signal: AbortSignal.abort() })), { name: 'AbortError' })
  await assert.rejects(all(islet.events('sbx-00000000000000000000').follow()), (error) =>
    hasCode(error, 'sandbox_not_found'),
  )
})

test('patches are made, listed, applied and deleted', async () => {
  const connection = { url: api.url, apiKey: TEST_KEY }
  const source = await Sandbox.create(connection)
  const { id } = await source.createCheckpoint('base')
  const first = await Sandbox.createCheckpointPatch(id, { script: 'echo 1 >> log', ...connection })
  const second = await islet.checkpoints.patches.create(id, { script: 'exit 3', description: 'fails' })
  assert.deepEqual(await Sandbox.listCheckpointPatches(id, connection), [first, second])
  assert.deepEqual(await islet.checkpoints.patches.list(id), [first, second])
  const sandbox = await Sandbox.createFromCheckpoint(id, connection)
  assert.deepEqual(
    (await sandbox.listPatches()).map(({ patchId, status, exitCode }) => [patchId, status, exitCode]),
    [
      [first.id, 'applied', 0],
      [second.id, 'failed', 3],
    ],
  )
  await Sandbox.deleteCheckpointPatch(id, second.id, connection)
  const again = () => islet.checkpoints.patches.delete(id, second.id)
  await assert.rejects(again, (error) => hasCode(error, 'patch_not_found'))
  await assert.rejects(islet.checkpoints.patches.delete(id, '../x'), (error) =>
    hasCode(error, 'patch_not_found'),
  )
  await assert.rejects(islet.checkpoints.patches.list('..'), (error) =>
    hasCode(error, 'checkpoint_not_found'),
  )
  await sandbox.hibernate()
  assert.equal((await sandbox.wake()).patches?.length, 2)
})
