import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Sandbox } from '@islet/contract'
import { startSuite } from '../support/suite.ts'

const { server, islet } = await startSuite({ env: { ISLET_DEFAULT_RUNTIME: 'host' } })

test('the same key with the same request gives the same sandbox', async () => {
  const first = await create('once', { name: 'a' })
  const second = await create('once', { name: 'a' })
  assert.deepEqual([first.status, second.status], [201, 201])
  assert.equal(second.body.id, first.body.id)
  const other = await create('twice', { name: 'a' })
  assert.notEqual(other.body.id, first.body.id)
})

test('the same key with another request is refused', async () => {
  await create('mismatch', { name: 'a' })
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
