// Lists page by page: by cursor, or by offset and total.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { startTestApi, TEST_KEY, type TestApi } from '../../server/test/support/server.ts'
import { hasCode, Islet, type Sandbox } from '../src/index.ts'

const NAMES = ['b', 'd', 'a', undefined, 'c']

let api: TestApi
let islet: Islet
let made: Sandbox[]
before(async () => {
  api = await startTestApi()
  islet = new Islet({ url: api.url, apiKey: TEST_KEY })
  made = []
  for (const name of NAMES) made.push(await islet.sandboxes.create({ name, project: 'pages' }))
})
after(() => api[Symbol.asyncDispose]())

const refused = (call: Promise<unknown>) => assert.rejects(call, (error) => hasCode(error, 'bad_request'))
const namesOf = (found: { name: string | null }[]) => found.map(({ name }) => name)

test('sandboxes are counted by offset and total, and sorted as asked', async () => {
  const list = async (options: Parameters<typeof islet.sandboxes.list>[0]) => {
    const { sandboxes, total } = await islet.sandboxes.list({ project: 'pages', ...options })
    assert.equal(total, NAMES.length)
    return namesOf(sandboxes)
  }
  assert.deepEqual(await list({ limit: 2, offset: 0 }), ['c', null])
  assert.deepEqual(await list({ limit: 2, offset: 2 }), ['a', 'd'])
  assert.deepEqual(await list({ limit: 2, offset: 4 }), ['b'])
  assert.deepEqual(await list({ offset: 5 }), [])
  assert.deepEqual(await list({ direction: 'asc' }), ['b', 'd', 'a', null, 'c'])
  assert.deepEqual(await list({ sort: 'name' }), [null, 'a', 'b', 'c', 'd'])
  assert.deepEqual(await list({ sort: 'name', direction: 'desc', offset: 1, limit: 2 }), ['c', 'b'])
  await made[2]!.update({ metadata: { touched: true } })
  assert.deepEqual(await list({ sort: 'updated', limit: 1 }), ['a'])
  await made[0]!.hibernate()
  assert.deepEqual(await list({ sort: 'status', limit: 1 }), ['b'])
  const all = []
  const sorted = { project: 'pages', sort: 'name', limit: 2, offset: 1 } as const
  for await (const sandbox of islet.sandboxes.all(sorted)) all.push(sandbox)
  assert.deepEqual(namesOf(all), ['a', 'b', 'c', 'd'])
})

test('a page begins at a cursor or at an offset, and a cursor belongs to its order', async () => {
  const { cursor } = await islet.sandboxes.list({ sort: 'name', limit: 1 })
  const next = await islet.sandboxes.list({ sort: 'name', limit: 1, cursor })
  assert.deepEqual(namesOf(next.sandboxes), ['a'])
  await refused(islet.sandboxes.list({ sort: 'name', limit: 1, cursor, offset: 1 }))
  await refused(islet.sandboxes.list({ limit: 1, cursor }))
  await refused(islet.sandboxes.list({ sort: 'name', direction: 'desc', cursor }))
  await refused(islet.sandboxes.list({ sort: 'memory' as 'name' }))
  await refused(islet.sandboxes.list({ offset: -1 }))
  await refused(islet.sandboxes.list({ offset: 1_000_001 }))
  await refused(islet.snapshots.list({ cursor, offset: 0 }))
  await refused(islet.checkpoints.list({ cursor: 'x', offset: 0 }))
})

test('snapshots, checkpoints, processes, events and runtimes take an offset too', async () => {
  const box = made[4]!
  for (const name of ['one', 'two', 'three']) {
    await islet.snapshots.create({ sandbox: box.id }, { name })
    await box.createCheckpoint(name)
    await box.exec.run(`echo ${name}`)
  }
  const snapshots = await islet.snapshots.list({ offset: 1, limit: 1 })
  assert.deepEqual([namesOf(snapshots.snapshots), snapshots.total], [['two'], 3])
  const byName = await islet.snapshots.list({ sort: 'name' })
  assert.deepEqual(namesOf(byName.snapshots), ['one', 'three', 'two'])
  const checkpoints = await islet.checkpoints.list({ sandbox: box.id, offset: 2 })
  assert.deepEqual([namesOf(checkpoints.checkpoints), checkpoints.total], [['one'], 3])
  const rest = []
  for await (const { name } of islet.checkpoints.all({ sandbox: box.id, offset: 1, limit: 1 }))
    rest.push(name)
  assert.deepEqual(rest, ['two', 'one'])
  const processes = await box.exec.list({ offset: 1, limit: 1, status: 'completed' })
  assert.deepEqual(
    processes.map(({ command }) => command),
    ['echo two'],
  )
  const events = await box.events.list({ direction: 'asc', offset: 1, limit: 1 })
  assert.deepEqual([events.events.map(({ type }) => type), events.more], [['started'], true])
  assert.equal(events.total, (await box.events.list({ limit: 1000 })).events.length)
  const runtimes = await islet.runtimes.list()
  assert.deepEqual(await islet.runtimes.list({ limit: 2, offset: 1 }), runtimes.slice(1, 3))
  await refused(islet.runtimes.list({ limit: 0 }))
  const answer = await api.call('GET', '/v1/runtimes?limit=1')
  assert.equal(((await answer.json()) as { total: number }).total, runtimes.length)
})
