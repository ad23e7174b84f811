import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { IsletError } from '@islet/contract/client'
import { startTestApi, TEST_KEY, type TestApi, until } from '../../server/test/support/server.ts'
import { hasCode, Sandbox } from '../src/index.ts'

let api: TestApi
let sandbox: Sandbox
before(async () => {
  api = await startTestApi()
  sandbox = await Sandbox.create({ url: api.url, apiKey: TEST_KEY })
})
after(() => api[Symbol.asyncDispose]())

const isMissing = (error: unknown) => error instanceof IsletError && error.code === 'key_not_found'

test('the documented calls work as documented', async () => {
  const { store } = sandbox
  assert.deepEqual(await store.set('status', { value: 'processing' }), { ok: true, expires_at: null })
  const value = { step: 3, total: 10, score: 0.91 }
  const before = Date.now()
  await store.set('progress', { value, ttl_seconds: 3600 })
  const entry = await store.get('progress')
  const state = entry.value as { step: number; total: number; score: number }
  assert.equal(`Step ${state.step} of ${state.total}`, 'Step 3 of 10')
  assert.ok(Date.parse(entry.expires_at!) >= before + 3_600_000)
  for (const key of ['run_2', 'run_1', 'other']) await store.set(key, { value: null })
  assert.deepEqual(await store.list({ prefix: 'run_' }), { keys: ['run_1', 'run_2'], truncated: false })
  const { cursor, ...first } = await store.list({ prefix: 'run_', limit: 1 })
  assert.deepEqual(first, { keys: ['run_1'], truncated: true })
  assert.deepEqual(await store.list({ prefix: 'run_', cursor }), { keys: ['run_2'], truncated: false })
  const applied = await store.batch([
    { op: 'set', key: 'result', value: { score: 0.95 }, ttl_seconds: 7200 },
    { op: 'delete', key: 'other' },
  ])
  assert.deepEqual(applied, { applied: 2, ok: true })
  await assert.rejects(store.get('other'), isMissing)
  assert.deepEqual(await store.delete('result'), { deleted: true, ok: true })
  assert.deepEqual(await store.delete('result'), { deleted: false, ok: true })
})

test('an empty key is refused by every call', async () => {
  const { store } = sandbox
  const isRefused = (error: unknown) => hasCode(error, 'bad_request') && /not be empty/.test(error.message)
  for (const call of [() => store.set('', { value: 1 }), () => store.get(''), () => store.delete('')])
    await assert.rejects(call(), isRefused)
})

test('what has expired is as if it had never been', async () => {
  await sandbox.store.set('brief', { value: 1, ttl_seconds: 0.05 })
  await until(async () => !(await sandbox.store.list({ prefix: 'brief' })).keys.includes('brief'))
  await assert.rejects(sandbox.store.get('brief'), isMissing)
})

test('any text is a key, also text that a URL cannot end in', async () => {
  const { store } = sandbox
  for (const key of [
    '.',
    '..',
    '...',
    './x',
    '/',
    'a/../b',
    '%2e',
    'ä €',
    '😀',
    '\0',
    '?',
    '#',
    'batch',
    'key',
  ]) {
    assert.equal((await store.set(key, { value: { key }, ttl_seconds: 60 })).ok, true, key)
    const { value, expires_at } = await store.get(key)
    assert.deepEqual(value, { key })
    assert.ok(expires_at)
    assert.ok((await store.list({ limit: 1000 })).keys.includes(key), key)
    assert.equal((await store.delete(key)).deleted, true, key)
    assert.equal((await store.delete(key)).deleted, false, key)
    await assert.rejects(store.get(key), isMissing)
  }
})

test('an invalid call is refused before anything is written', async () => {
  const { store } = sandbox
  const isBad = (error: unknown) => hasCode(error, 'bad_request')
  await assert.rejects(store.set('x'.repeat(513), { value: 1 }), isBad)
  await assert.rejects(store.set('none', { value: undefined }), isBad)
  await assert.rejects(store.set('none', { value: 1, ttl_seconds: -1 }), isBad)
  await assert.rejects(store.set('none', { value: 'x'.repeat(1024 * 1024) }), isBad)
  await assert.rejects(
    store.batch([
      { op: 'set', key: 'none', value: 1 },
      { op: 'delete', key: '' },
    ]),
    (error) => isBad(error) && /operations\[1\]/.test((error as Error).message),
  )
  await assert.rejects(store.get('none'), isMissing)
})

test('a value of a mebibyte goes there and back', async () => {
  const value = 'x'.repeat(1024 * 1024 - 2)
  await sandbox.store.set('large', { value })
  assert.equal((await sandbox.store.get('large')).value, value)
})

test('calls can be aborted', async () => {
  const signal = AbortSignal.abort()
  await assert.rejects(sandbox.store.get('x', { signal }), { name: 'AbortError' })
  await assert.rejects(sandbox.store.set('aborted', { value: 1 }, { signal }), { name: 'AbortError' })
  await assert.rejects(sandbox.store.get('aborted'), isMissing)
})
