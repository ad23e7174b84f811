import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { IsletError, newId } from '@islet/contract/client'
import { makeGate } from '../../server/test/support/barrier.ts'
import { startTestApi, TEST_KEY, type TestApi } from '../../server/test/support/server.ts'
import { Client } from '../src/client/client.ts'
import { hasCode, Islet, Sandbox } from '../src/index.ts'
import { startProxy } from './proxy.ts'

const apiKey = TEST_KEY
const draining = { status: 503, body: JSON.stringify(new IsletError('draining').toBody()) }

let api: TestApi
before(async () => {
  api = await startTestApi()
})
after(() => api[Symbol.asyncDispose]())

test('every call that needs the key shows it as a bearer token and nowhere else', async () => {
  await using proxy = await startProxy(api.url)
  const { id } = await api.createSandbox()
  assert.equal((await Sandbox.get(id, { url: proxy.url, apiKey })).id, id)
  const [asked] = proxy.asked
  assert.equal(asked?.headers.authorization, `Bearer ${apiKey}`)
  assert.equal(asked?.path, `/v1/sandboxes/${id}`)
  assert.equal(asked?.query.size, 0)
  await new Islet({ url: proxy.url, apiKey }).health()
  assert.equal(proxy.asked[1]?.path, '/health')
  assert.equal(proxy.asked[1]?.headers.authorization, undefined)
})

test('each create makes a new sandbox with the given options', async () => {
  const input = { name: 'first', env: { A: '1' } }
  const first = await Sandbox.create({ url: api.url, apiKey, ...input })
  const second = await Sandbox.create({ url: api.url, apiKey, env: input.env })
  assert.notEqual(first.id, second.id)
  assert.equal(first.status, 'running')
  const { name, env } = await first.getInfo()
  assert.deepEqual({ name, env }, input)
})

test('a create that lost its connection, or its answer, is tried again and makes one sandbox', async () => {
  await using proxy = await startProxy(api.url, (_, count) =>
    count === 1 ? { cut: 'request' } : count === 2 ? { cut: 'answer' } : count === 3 ? draining : undefined,
  )
  const { id } = await Sandbox.create({ url: proxy.url, apiKey, name: 'once' })
  assert.equal(proxy.asked.length, 4)
  assert.equal(new Set(proxy.asked.map(({ headers }) => headers['idempotency-key'])).size, 1)
  const { sandboxes } = await Sandbox.list({ url: api.url, apiKey, name: 'once' })
  assert.deepEqual(
    sandboxes.map((found) => found.id),
    [id],
  )
})

test('a command is never sent twice', async () => {
  const sandbox = await Sandbox.create({ url: api.url, apiKey })
  for (const cut of ['request', 'answer'] as const) {
    await using proxy = await startProxy(api.url, () => ({ cut }))
    const there = new Sandbox(new Client({ url: proxy.url, apiKey }), await sandbox.getInfo())
    await assert.rejects(there.exec.run('date'), (error) => hasCode(error, 'connection_failed'))
    assert.equal(proxy.asked.length, 1)
  }
  assert.equal((await sandbox.exec.list()).length, 1)
})

test('safe calls give up after the bound, with the last error', async () => {
  await using proxy = await startProxy(api.url, () => draining)
  const islet = new Islet({ url: proxy.url, apiKey, retries: 1 })
  await assert.rejects(islet.info(), (error) => hasCode(error, 'draining'))
  assert.equal(proxy.asked.length, 2)
})

test('the page of a gateway that finds no server is a connection that failed', async () => {
  const gateway = { status: 502, body: '<h1>Bad Gateway</h1>' }
  await using proxy = await startProxy(api.url, (_, count) => (count === 1 ? gateway : undefined))
  const islet = new Islet({ url: proxy.url, apiKey, retries: 0 })
  await assert.rejects(islet.info(), (error) => hasCode(error, 'connection_failed'))
  assert.equal((await islet.info()).engine, 'process')
})

test('an error that says it is final is not tried again', async () => {
  await using proxy = await startProxy(api.url)
  await assert.rejects(Sandbox.get(newId('sandbox'), { url: proxy.url, apiKey }), (error) => {
    assert.ok(error instanceof IsletError)
    assert.equal(error.code, 'sandbox_not_found')
    assert.equal(error.retryable, false)
    return true
  })
  assert.equal(proxy.asked.length, 1)
})

test('an unreachable server is connection_failed with a hint', async () => {
  const proxy = await startProxy(api.url)
  await proxy[Symbol.asyncDispose]()
  const islet = new Islet({ url: proxy.url, apiKey, retries: 0 })
  await assert.rejects(islet.health(), (error) => {
    assert.ok(hasCode(error, 'connection_failed'))
    assert.equal(error.retryable, true)
    assert.match(error.message, /127\.0\.0\.1.*ECONNREFUSED/)
    assert.match(error.hint ?? '', /islet serve/)
    return true
  })
})

test('an answer that is not as agreed is bad_response', async () => {
  for (const body of ['{"hello":"world"}', 'hello']) {
    await using proxy = await startProxy(api.url, () => ({ status: 200, body }))
    const islet = new Islet({ url: proxy.url, apiKey })
    await assert.rejects(islet.info(), (error) => hasCode(error, 'bad_response'))
  }
})

test('an aborted call rejects with a DOMException named AbortError, whatever the reason', async () => {
  const sandbox = await Sandbox.create({ url: api.url, apiKey })
  const gate = makeGate(await sandbox.getInfo())
  const abort = new AbortController()
  const running = sandbox.exec.run('cat gate; sleep 600', { signal: abort.signal })
  await (await gate.reached()).open()
  abort.abort(new Error('enough'))
  await assert.rejects(running, (error) => error instanceof DOMException && error.name === 'AbortError')
  await assert.rejects(sandbox.getInfo({ signal: abort.signal }), { name: 'AbortError' })
})

test('aborting ends the pause between two tries', async () => {
  await using proxy = await startProxy(api.url, () => ({ cut: 'request' }))
  const islet = new Islet({ url: proxy.url, apiKey, retries: 1000 })
  await assert.rejects(islet.info({ signal: AbortSignal.timeout(200) }), { name: 'AbortError' })
})

test('isRunning is false for a sandbox that does not exist, and killing it is fine', async () => {
  const info = await api.createSandbox()
  const sandbox = new Sandbox(new Client({ url: api.url, apiKey }), { ...info, id: newId('sandbox') })
  assert.equal(await sandbox.isRunning(), false)
  await sandbox.kill()
})

test('a handle is made without a request, and its first call says whether there is such a sandbox', async () => {
  await using proxy = await startProxy(api.url)
  const { id } = await api.createSandbox()
  const there = new Islet({ url: proxy.url, apiKey }).sandboxes.handle(id)
  assert.deepEqual([there.id, there.status, proxy.asked.length], [id, 'running', 0])
  assert.equal((await there.exec.run('echo here')).stdout, 'here\n')
  const gone = new Islet({ url: api.url, apiKey }).sandboxes.handle(newId('sandbox'))
  await assert.rejects(gone.exec.run('true'), (error) => hasCode(error, 'sandbox_not_found'))
})

test('leaving the block of an await using kills the sandbox', async () => {
  let id = ''
  {
    await using sandbox = await Sandbox.create({ url: api.url, apiKey })
    assert.ok(await sandbox.isRunning())
    id = sandbox.id
  }
  assert.equal((await Sandbox.get(id, { url: api.url, apiKey })).status, 'stopped')
})

test('runCommand in the background answers at once with the process id', async () => {
  const sandbox = await Sandbox.create({ url: api.url, apiKey })
  assert.equal((await sandbox.runCommand('echo hi', { timeout: 60_000 })).stdout, 'hi\n')
  const started = await sandbox.runCommand('sleep 600', { background: true })
  assert.equal(started.exitCode, 0)
  assert.equal((await sandbox.exec.get(started.processId)).status, 'running')
})

test('every page of a list is read', async () => {
  const metadata = { a: '1', b: '2' }
  const made = await Promise.all([1, 2, 3].map(() => api.createSandbox({ metadata })))
  await api.createSandbox({ metadata: { a: '1' } })
  const found: string[] = []
  const { sandboxes } = new Islet({ url: api.url, apiKey })
  for await (const { id } of sandboxes.all({ metadata: ['a=1', 'b=2'], limit: 2 })) found.push(id)
  assert.deepEqual(found.sort(), made.map(({ id }) => id).sort())
})
