import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Sandbox } from '@islet/contract'
import { failsWith } from '../support/shell.ts'
import { startSuite } from '../support/suite.ts'

const { server, islet } = await startSuite({ env: { ISLET_DEFAULT_RUNTIME: 'host' } })

test('the same key with the same request gives the same sandbox', async () => {
  const first = await create('once', { name: 'a' })
  const second = await create('once', { name: 'a' })
  assert.deepEqual([first.status, second.status], [201, 201])
  assert.equal(second.body.id, first.body.id)
  const other = await create('twice', {})
  assert.notEqual(other.body.id, first.body.id)
})

test('the same key with another request is refused', async () => {
  await create('mismatch', { name: 'm' })
  const { status, body } = await create('mismatch', { name: 'b' })
  assert.deepEqual([status, (body as unknown as Failure).error.code], [409, 'idempotency_mismatch'])
})

test('ten creates at once with one key make one sandbox', async () => {
  const before = (await islet.sandboxes.list()).total
  const answers = await Promise.all(Array.from({ length: 10 }, () => create('together', { name: 'c' })))
  assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([201]))
  assert.equal(new Set(answers.map(({ body }) => body.id)).size, 1)
  assert.equal((await islet.sandboxes.list()).total, before + 1)
})

test('a key is remembered when the server is stopped, and when it is killed', async () => {
  const first = await create('durable', { name: 'd' })
  await server.stop()
  await server.start()
  assert.equal((await create('durable', { name: 'd' })).body.id, first.body.id)
  await server.kill()
  await server.start()
  assert.equal((await create('durable', { name: 'd' })).body.id, first.body.id)
  assert.equal((await create('durable', { name: 'e' })).status, 409)
})

test('a request that failed does not use its key up', async () => {
  assert.equal((await create('again', { runtime: 'nosuch' })).status, 404)
  assert.equal((await create('again', { name: 'f' })).status, 201)
})

test('a name belongs to one sandbox at a time, also when many ask at once and after a crash', async () => {
  const asked = Array.from({ length: 10 }, () => islet.sandboxes.create({ name: 'one' }))
  const outcomes = await Promise.allSettled(asked)
  const [made, ...more] = outcomes.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []))
  assert.equal(more.length, 0)
  for (const each of outcomes) {
    if (each.status === 'fulfilled') continue
    assert.deepEqual([each.reason.code, each.reason.details.id], ['name_taken', made!.id])
    assert.match(each.reason.hint, /getOrCreate.*--reuse/)
  }
  const other = await islet.sandboxes.create({ name: 'a b/ü' })
  await failsWith(other.update({ name: 'one', network: { enabled: true } }), 'name_taken')
  assert.equal((await other.getInfo()).network.enabled, false)
  assert.equal((await made!.update({ name: 'one', description: 'as it was' })).name, 'one')
  await failsWith(made!.fork({ name: 'a b/ü' }), 'name_taken')
  await failsWith(made!.fork({ name: 'two', count: 2 }), 'bad_request')
  await using copy = await made!.fork()
  assert.equal((await copy.getInfo()).name, null)
  for (const name of ['sbx-mine', '.', '..', ''])
    await failsWith(islet.sandboxes.create({ name }), 'bad_request')

  await server.kill()
  await server.start()
  await failsWith(islet.sandboxes.create({ name: 'one' }), 'name_taken')
  for (const { id, name } of [
    { id: made!.id, name: 'one' },
    { id: other.id, name: 'a b/ü' },
  ]) {
    const found = await islet.sandboxes.connect(name)
    assert.deepEqual([found.id, (await islet.sandboxes.get(name)).id], [id, id])
  }
  const run = await server.post('/v1/sandboxes/one/exec', { command: 'echo by name' })
  assert.equal(((await run.json()) as { stdout: string }).stdout, 'by name\n')
  await made!.kill()
  await failsWith(islet.sandboxes.connect('one'), 'sandbox_not_found')
  assert.notEqual((await islet.sandboxes.create({ name: 'one' })).id, made!.id)
})

test('a token knows the name of its own sandbox, and no other', async () => {
  const [mine, other] = await Promise.all(['mine', 'other'].map((name) => islet.sandboxes.create({ name })))
  const { token } = await mine!.getToken()
  const headers = { Authorization: `Bearer ${token}` }
  const status = async (name: string) => (await server.fetch(`/v1/sandboxes/${name}`, { headers })).status
  assert.deepEqual([await status('mine'), await status('other'), await status('none')], [200, 404, 404])
  assert.equal(await status(other!.id), 403)
})

test('getOrCreate gives concurrent callers the same sandbox, a use wakes it, and a new one is created when it is gone', async () => {
  const all = () =>
    Promise.all(Array.from({ length: 10 }, () => islet.sandboxes.getOrCreate('shared', { env: { A: '1' } })))
  const first = await all()
  assert.equal(new Set(first.map(({ id }) => id)).size, 1)
  await first[0]!.hibernate()
  const again = await islet.sandboxes.getOrCreate('shared', { env: { A: '2' } })
  const { stdout, autoResumed } = await again.exec.run('echo $A')
  assert.deepEqual([again.id, stdout, autoResumed], [first[0]!.id, '1\n', true])
  // Some callers get the sandbox that is being removed, the others its successor; no call fails.
  const [given] = await Promise.all([all(), again.kill()])
  const { id } = await islet.sandboxes.getOrCreate('shared')
  assert.notEqual(id, again.id)
  for (const each of given) assert.ok([id, again.id].includes(each.id))
})

interface Failure {
  error: { code: string }
}

async function create(key: string, body: object): Promise<{ status: number; body: Sandbox }> {
  const headers = { 'Content-Type': 'application/json', 'Idempotency-Key': key }
  const response = await server.fetch('/v1/sandboxes', {
    method: 'POST',
    headers,
    body: JSON.stringify(body),
  })
  return { status: response.status, body: (await response.json()) as Sandbox }
}
