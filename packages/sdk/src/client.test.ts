import assert from 'node:assert/strict'
import { test } from 'node:test'
import { IsletError } from '@islet/contract'
import { EXEC_RESULT, PROCESS, SANDBOX, startStub } from '../test/stub.ts'
import { hasCode, Islet, Sandbox } from './index.ts'

const apiKey = 'test-key-test-key'
const unavailable = {
  status: 503,
  json: { error: { code: 'draining', message: 'Going.', retryable: true } },
}

test('every call shows the key as a bearer token and nowhere else', async () => {
  await using stub = await startStub(() => ({ status: 200, json: SANDBOX }))
  await Sandbox.get(SANDBOX.id, { url: stub.url, apiKey })
  const [asked] = stub.asked
  assert.equal(asked?.headers.authorization, `Bearer ${apiKey}`)
  assert.equal(asked?.path, `/v1/sandboxes/${SANDBOX.id}`)
  assert.ok(!String(asked?.query).includes(apiKey))
})

test('create sends only the sandbox as its body and a new idempotency key each time', async () => {
  await using stub = await startStub(() => ({ status: 201, json: SANDBOX }))
  const sandbox = await Sandbox.create({ url: stub.url, apiKey, name: 'first', env: { A: '1' } })
  await Sandbox.create({ url: stub.url, apiKey })
  assert.deepEqual(JSON.parse(stub.asked[0]!.body), { name: 'first', env: { A: '1' } })
  const keys = stub.asked.map(({ headers }) => headers['idempotency-key'])
  assert.equal(new Set(keys).size, 2)
  assert.ok(keys.every((key) => typeof key === 'string' && key.length >= 16))
  assert.equal(sandbox.id, SANDBOX.id)
  assert.equal(sandbox.status, 'running')
})

test('a create that lost its connection is tried again with the same idempotency key', async () => {
  await using stub = await startStub((_, count) =>
    count === 1 ? { hangUp: true } : count === 2 ? unavailable : { status: 201, json: SANDBOX },
  )
  await Sandbox.create({ url: stub.url, apiKey })
  assert.equal(stub.asked.length, 3)
  assert.equal(new Set(stub.asked.map(({ headers }) => headers['idempotency-key'])).size, 1)
})

test('a command is never sent twice', async () => {
  await using stub = await startStub(() => ({ hangUp: true }))
  const sandbox = await connected(stub.url)
  await assert.rejects(sandbox.exec.run('date'), (error) => hasCode(error, 'connection_failed'))
  assert.equal(stub.asked.length, 1)
})

test('safe calls give up after the bound, with the last error', async () => {
  await using stub = await startStub(() => unavailable)
  const islet = new Islet({ url: stub.url, apiKey, retries: 1 })
  await assert.rejects(islet.info(), (error) => hasCode(error, 'draining'))
  assert.equal(stub.asked.length, 2)
})

test('an error that says it is final is not tried again', async () => {
  const json = { error: { code: 'sandbox_lost', message: 'Gone.', hint: 'Make another.', retryable: false } }
  await using stub = await startStub(() => ({ status: 502, json }))
  await assert.rejects(Sandbox.get(SANDBOX.id, { url: stub.url, apiKey }), (error) => {
    assert.ok(error instanceof IsletError)
    assert.equal(error.code, 'sandbox_lost')
    assert.equal(error.hint, 'Make another.')
    return true
  })
  assert.equal(stub.asked.length, 1)
})

test('an unreachable server is connection_failed with a hint', async () => {
  const stub = await startStub(() => ({}))
  await stub[Symbol.asyncDispose]()
  const islet = new Islet({ url: stub.url, apiKey, retries: 0 })
  await assert.rejects(islet.health(), (error) => {
    assert.ok(hasCode(error, 'connection_failed'))
    assert.equal(error.retryable, true)
    assert.match(error.message, /127\.0\.0\.1.*ECONNREFUSED/)
    assert.match(error.hint ?? '', /islet serve/)
    return true
  })
})

test('an answer that is not as agreed is bad_response', async () => {
  await using stub = await startStub(() => ({ json: { hello: 'world' } }))
  const islet = new Islet({ url: stub.url, apiKey })
  await assert.rejects(islet.info(), (error) => hasCode(error, 'bad_response'))
})

test('an aborted call rejects with a DOMException named AbortError, whatever the reason', async () => {
  await using stub = await startStub(() => ({ silent: true }))
  const sandbox = await connected(stub.url)
  const abort = new AbortController()
  const running = sandbox.exec.run('sleep 60', { signal: abort.signal })
  setImmediate(() => abort.abort(new Error('enough')))
  await assert.rejects(running, (error) => error instanceof DOMException && error.name === 'AbortError')
  await assert.rejects(sandbox.getInfo({ signal: abort.signal }), { name: 'AbortError' })
})

test('aborting ends the pause between two tries', async () => {
  await using stub = await startStub(() => ({ hangUp: true }))
  const islet = new Islet({ url: stub.url, apiKey, retries: 1000 })
  await assert.rejects(islet.info({ signal: AbortSignal.timeout(200) }), { name: 'AbortError' })
})

test('isRunning is false for a sandbox that does not exist', async () => {
  const json = { error: { code: 'sandbox_not_found', message: 'None.', retryable: false } }
  await using stub = await startStub(() => ({ status: 404, json }))
  const sandbox = await connected(stub.url)
  assert.equal(await sandbox.isRunning(), false)
  await sandbox.kill()
})

test('leaving the block of an await using kills the sandbox', async () => {
  await using stub = await startStub(({ method }) => ({
    status: method === 'POST' ? 201 : 200,
    json: SANDBOX,
  }))
  {
    await using sandbox = await Sandbox.create({ url: stub.url, apiKey })
    assert.equal(sandbox.id, SANDBOX.id)
  }
  assert.equal(stub.asked.at(-1)?.method, 'DELETE')
})

test('runCommand in the background answers at once with the process id', async () => {
  await using stub = await startStub(({ path }) =>
    path.endsWith('/exec') ? { json: EXEC_RESULT } : { status: 201, json: PROCESS },
  )
  const sandbox = await connected(stub.url)
  assert.equal((await sandbox.runCommand('echo hi', { timeout: 1000 })).stdout, 'hi\n')
  const started = await sandbox.runCommand('sleep 1', { background: true })
  assert.equal(started.exitCode, 0)
  assert.equal(started.processId, PROCESS.id)
  assert.deepEqual(JSON.parse(stub.asked[0]!.body), { command: 'echo hi', timeout: 1000 })
})

test('every page of a list is read', async () => {
  await using stub = await startStub(({ query }) => ({
    json: { sandboxes: [SANDBOX], total: 2, ...(query.get('cursor') ? {} : { cursor: 'next' }) },
  }))
  const found: string[] = []
  const { sandboxes } = new Islet({ url: stub.url, apiKey })
  for await (const { id } of sandboxes.all({ metadata: ['a=1', 'b=2'] })) found.push(id)
  assert.equal(found.length, 2)
  assert.deepEqual(stub.asked[0]?.query.getAll('metadata'), ['a=1', 'b=2'])
})

async function connected(url: string): Promise<Sandbox> {
  const { Client } = await import('./client.ts')
  return new Sandbox(new Client({ url, apiKey }), { ...SANDBOX })
}
