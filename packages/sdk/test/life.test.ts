// Pause and hibernate in the SDK. The engine of these tests cannot freeze; tests/e2e checks what pause does.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { startTestApi, TEST_KEY, type TestApi } from '../../server/test/support/server.ts'
import { hasCode, Sandbox } from '../src/index.ts'

let api: TestApi
before(async () => {
  api = await startTestApi()
})
after(() => api[Symbol.asyncDispose]())

const create = (options: Parameters<typeof Sandbox.create>[0] = {}) =>
  Sandbox.create({ url: api.url, apiKey: TEST_KEY, ...options })

test('a sandbox is hibernated and woken, and its files are there', async () => {
  await using sandbox = await create({ timeout: { idle: '1h', paused: '24h' } })
  await sandbox.files.write('a', 'kept')
  assert.equal((await sandbox.hibernate()).status, 'hibernated')
  assert.equal(sandbox.status, 'hibernated')
  assert.equal(await sandbox.isRunning(), false)
  const woken = await sandbox.wake({ timeout: '2h' })
  assert.deepEqual([woken.status, woken.timeouts.idleMs, sandbox.status], ['running', 7_200_000, 'running'])
  assert.equal(await sandbox.files.read('a'), 'kept')
  assert.equal(await sandbox.isRunning(), true)
})

test('a use wakes it and says so; looking at it does not', async () => {
  await using sandbox = await create()
  await sandbox.hibernate()
  await Promise.all([sandbox.getInfo(), sandbox.isRunning(), sandbox.exec.list()])
  assert.equal(await sandbox.isRunning(), false)
  assert.equal((await sandbox.exec.run('true')).autoResumed, true)
  assert.equal((await sandbox.exec.run('true')).autoResumed, false)
})

test('timeouts are given as milliseconds, as text, or one by one', async () => {
  await using sandbox = await create({ timeout: { idle: 1000 * 60, execution: '2m', onIdle: 'kill' } })
  const made = { idleMs: 60_000, executionMs: 120_000, pausedMs: 0, onIdle: 'kill' }
  assert.deepEqual((await sandbox.getInfo()).timeouts, made)
  assert.equal((await sandbox.setTimeout(90_000)).timeouts.idleMs, 90_000)
  assert.equal((await sandbox.setTimeout('10m')).timeouts.idleMs, 600_000)
  const changed = await sandbox.setTimeout({ idle: 0, paused: '24h', onIdle: 'hibernate' })
  assert.deepEqual(changed.timeouts, {
    idleMs: 0,
    executionMs: 120_000,
    pausedMs: 86_400_000,
    onIdle: 'hibernate',
  })
  await assert.rejects(sandbox.setTimeout('soon'), (error) => hasCode(error, 'bad_request'))
})

test('a verb that does not fit is refused with both states, and nothing is tried twice', async () => {
  await using sandbox = await create()
  await sandbox.hibernate()
  await assert.rejects(sandbox.resume(), (error) => {
    assert.ok(hasCode(error, 'invalid_state'))
    assert.deepEqual(error.details, { status: 'hibernated', wanted: 'running' })
    return true
  })
  assert.equal((await sandbox.hibernate()).status, 'hibernated')
  await sandbox.wake()
  assert.deepEqual([(await sandbox.wake()).status, (await sandbox.resume()).status], ['running', 'running'])
  assert.equal((await sandbox.wake({ timeout: '9m' })).timeouts.idleMs, 540_000)
  await assert.rejects(sandbox.pause(), (error) => hasCode(error, 'not_supported'))
  let sent = 0
  const failing: typeof fetch = (input, init) => {
    if (String(input).endsWith('/hibernate')) sent++
    return String(input).endsWith('/hibernate')
      ? Promise.reject(new TypeError('fetch failed'))
      : fetch(input, init)
  }
  const there = await Sandbox.connect(sandbox.id, { url: api.url, apiKey: TEST_KEY, fetch: failing })
  await assert.rejects(there.hibernate(), (error) => hasCode(error, 'connection_failed'))
  assert.equal(sent, 1)
})

test('every one of them can be aborted', async () => {
  await using sandbox = await create()
  const signal = AbortSignal.abort()
  const calls = [
    sandbox.pause({ signal }),
    sandbox.resume({ signal }),
    sandbox.hibernate({ signal }),
    sandbox.wake({ signal }),
    sandbox.setTimeout(0, { signal }),
    sandbox.getInfo({ signal }),
    sandbox.isRunning({ signal }),
  ]
  for (const call of calls) await assert.rejects(call, { name: 'AbortError' })
  assert.equal(await sandbox.isRunning(), true)
})
