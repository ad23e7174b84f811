import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { startTestApi, TEST_KEY, type TestApi } from '../../server/test/support/server.ts'
import { Islet } from '../src/islet/islet.ts'
import { Sandbox } from '../src/sandbox/sandbox.ts'

let api: TestApi
let islet: Islet
let sandbox: Sandbox
before(async () => {
  api = await startTestApi()
  islet = new Islet({ url: api.url, apiKey: TEST_KEY })
  sandbox = await islet.sandboxes.create({ env: { KEPT: 'yes' }, metadata: { job: 'a' } })
})
after(() => api[Symbol.asyncDispose]())

const cat = async (from: Sandbox, name = 'file') => (await from.runCommand(`cat ${name}`)).stdout

test('a checkpoint is made, listed, restored on the same object and deleted', async () => {
  await sandbox.files.write('file', 'one')
  await sandbox.store.set('step', { value: 1 })
  const checkpoint = await sandbox.createCheckpoint('first')
  assert.deepEqual([checkpoint.name, checkpoint.sandboxId, checkpoint.memory], ['first', sandbox.id, false])
  assert.equal((await sandbox.createCheckpoint({ name: 'second' })).name, 'second')
  await sandbox.files.write('file', 'two')
  await sandbox.store.set('step', { value: 2 })
  const listed = await sandbox.listCheckpoints()
  assert.deepEqual(
    listed.map(({ name }) => name),
    ['first', 'second'],
  )
  assert.equal((await islet.checkpoints.get(checkpoint.id)).name, 'first')
  const restored = await sandbox.restoreCheckpoint(checkpoint.id)
  assert.deepEqual([restored.sandbox.id, restored.services, sandbox.status], [sandbox.id, [], 'running'])
  assert.deepEqual([await cat(sandbox), (await sandbox.store.get('step')).value], ['one', 1])
  await sandbox.deleteCheckpoint(checkpoint.id)
  await islet.checkpoints.delete(listed[1]!.id)
  assert.deepEqual(await sandbox.listCheckpoints(), [])
  await assert.rejects(sandbox.restoreCheckpoint(checkpoint.id), { code: 'checkpoint_not_found' })
})

test('a taken name, a name as an id and what leads elsewhere are refused', async () => {
  const { id } = await sandbox.createCheckpoint('taken')
  await assert.rejects(sandbox.createCheckpoint('taken'), { code: 'conflict', details: { checkpointId: id } })
  for (const wrong of ['taken', '../x', '..', 'ckp-00000000000000000000'])
    await assert.rejects(sandbox.deleteCheckpoint(wrong), { code: 'checkpoint_not_found' })
})

test('a call without the id it needs is refused and says which', async () => {
  for (const missing of ['', undefined as unknown as string]) {
    const refused = (call: Promise<unknown>, message: RegExp) =>
      assert.rejects(call, { code: 'bad_request', message })
    await refused(islet.snapshots.lineage(missing), /the id or tag of a snapshot/)
    await refused(sandbox.deleteCheckpoint(missing), /the id of a checkpoint/)
    await refused(islet.checkpoints.patches.list(missing), /the id of a checkpoint/)
    await refused(sandbox.service.retrieve(missing), /a name/)
    await refused(sandbox.exec.get(missing), /the id of a process/)
    await refused(sandbox.exec.attach(missing), /the id of a process/)
    await refused(sandbox.terminal.connect(missing), /the id of a terminal/)
    await refused(sandbox.watcher.connect(missing), /the id of a watcher/)
    await refused(islet.sandboxes.get(missing), /the id of a sandbox/)
  }
})

test('a sandbox begins as a checkpoint, also of one that is gone', async () => {
  const source = await islet.sandboxes.create({ env: { A: '1', B: '1' } })
  await source.files.write('file', 'saved')
  const { id } = await source.createCheckpoint('base')
  await source.kill()
  const options = { url: api.url, apiKey: TEST_KEY }
  const made = await Sandbox.createFromCheckpoint(id, { ...options, name: 'made', env: { B: '2' } })
  assert.equal(await cat(made), 'saved')
  const { env, name, origin } = await made.getInfo()
  assert.deepEqual([env.A, env.B, name, origin], ['1', '2', 'made', { kind: 'checkpoint', id }])
  const idempotencyKey = 'the-same'
  const [first, second] = await Promise.all(
    [1, 2].map(() => islet.checkpoints.createSandbox(id, { idempotencyKey })),
  )
  assert.equal(first!.id, second!.id)
  assert.deepEqual(
    (await islet.checkpoints.list(source.id)).map(({ name }) => name),
    ['base'],
  )
  const page = await islet.checkpoints.list({ name: 'base', limit: 1 })
  assert.deepEqual([page.total, page.checkpoints[0]?.id], [1, id])
  const every: string[] = []
  for await (const one of islet.checkpoints.all({ limit: 1 })) every.push(one.id)
  assert.equal(every.length, (await islet.checkpoints.list()).total)
  assert.ok(every.includes(id))
  await islet.checkpoints.delete(id)
  assert.equal((await islet.checkpoints.createSandbox(id, { idempotencyKey })).id, first!.id)
  await assert.rejects(islet.checkpoints.createSandbox(id), { code: 'checkpoint_not_found' })
  assert.equal(await cat(first!), 'saved')
})

test('an aborted create from a checkpoint leaves no sandbox', async () => {
  const { id } = await sandbox.createCheckpoint('aborted')
  const before = (await islet.sandboxes.list()).total
  const controller = new AbortController()
  const creating = islet.checkpoints.createSandbox(id, { signal: controller.signal })
  setTimeout(() => controller.abort(), 5)
  await assert.rejects(creating, { name: 'AbortError' })
  while ((await islet.sandboxes.list()).total !== before) await new Promise((done) => setTimeout(done, 20))
})

test('one fork is a sandbox with a token of its own that reaches it alone', async () => {
  await sandbox.files.write('file', 'parent')
  const child = await sandbox.fork({ env: { ROLE: 'worker' } })
  assert.notEqual(child.id, sandbox.id)
  await child.files.write('file', 'child')
  assert.deepEqual([await cat(sandbox), await cat(child)], ['parent', 'child'])
  const { env, metadata, origin } = await child.getInfo()
  assert.deepEqual([env.KEPT, env.ROLE, metadata], ['yes', 'worker', { job: 'a' }])
  assert.deepEqual(origin, { kind: 'fork', id: sandbox.id })
  const { token } = await child.getToken()
  const own = await Sandbox.connect(child.id, { url: api.url, token })
  assert.equal(await cat(own), 'child')
  await assert.rejects(Sandbox.connect(sandbox.id, { url: api.url, token }), { code: 'forbidden' })
})

test('several forks answer one by one, and a failure is theirs alone', async () => {
  const forks = await sandbox.fork({ count: 3 })
  assert.deepEqual([forks.length, forks.every(({ ok }) => ok), forks.memory], [3, true, false])
  assert.equal(typeof forks.frozenMs, 'number')
  const failed = await sandbox.fork({ count: 2, user: 'root' })
  for (const fork of failed) assert.equal(!fork.ok && fork.error.code, 'not_supported')
  await assert.rejects(sandbox.fork({ user: 'root' }), { code: 'not_supported' })
  await assert.rejects(sandbox.fork({ count: 0 }), { code: 'bad_request' })
})

test('an aborted fork leaves no sandbox', async () => {
  const before = (await islet.sandboxes.list()).total
  const controller = new AbortController()
  const forking = sandbox.fork({ count: 5, signal: controller.signal })
  setTimeout(() => controller.abort(), 30)
  await assert.rejects(forking, { name: 'AbortError' })
  while ((await islet.sandboxes.list()).total !== before) await new Promise((done) => setTimeout(done, 20))
})
