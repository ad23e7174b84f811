// The store as Iris documents it, through our SDK and over HTTP; and docs/coming-from/iris.md row by row.
import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import type { StoreOperation } from 'islet'
import { testRows } from '../coming-from/rows.ts'
import { until } from '../coming-from/until.ts'
import { failsWith } from '../support/shell.ts'
import { startSuite } from '../support/suite.ts'
import { testSeed } from './seeds.ts'

const suite = await startSuite()
const sandbox = await suite.create()
const { store } = sandbox
const { token } = await sandbox.getToken()

/** A call with the token of the sandbox, which also says whose store is meant. */
async function call(method: string, path: string, body?: unknown, bearer = token) {
  const headers = { Authorization: `Bearer ${bearer}`, 'Content-Type': 'application/json' }
  const answer = await fetch(suite.server.url + path, { method, headers, body: JSON.stringify(body) })
  return { status: answer.status, body: await answer.json() }
}
const isIso = (time: unknown) => new Date(time as string).toISOString() === time

testSeed('iris/store', {
  'the token of exec and files reaches the store, of its sandbox alone': async () => {
    await using other = await suite.create()
    await other.store.set('whose', { value: 'other' })
    await store.set('whose', { value: 'mine' })
    assert.equal((await call('GET', '/v1/store/whose')).body.value, 'mine')
    const there = await call('POST', `/v1/sandboxes/${sandbox.id}/exec`, { command: 'echo hi' })
    assert.deepEqual([there.status, there.body.stdout], [200, 'hi\n'])
    assert.equal((await call('GET', `/v1/sandboxes/${other.id}/store/whose`)).status, 403)
    assert.equal(
      (await call('GET', '/v1/store/whose', undefined, (await other.getToken()).token)).body.value,
      'other',
    )
    assert.equal((await call('GET', '/v1/store/whose', undefined, 'wrong')).status, 401)
    const { token: short } = await sandbox.getToken({ expiresIn: '1s' })
    await until(async () => (await call('GET', '/v1/store/whose', undefined, short)).status === 401)
    assert.equal((await call('GET', '/v1/store/whose', undefined, short)).body.error.code, 'token_expired')
  },
  'set stores a scalar and an object with a time to live': async () => {
    assert.deepEqual(await store.set('status', { value: 'processing' }), { ok: true, expires_at: null })
    const progress = { step: 3, total: 10, score: 0.91 }
    const before = Date.now()
    const { expires_at } = await store.set('progress', { value: progress, ttl_seconds: 3600 })
    assert.ok(isIso(expires_at) && Date.parse(expires_at!) >= before + 3_600_000)
    assert.deepEqual(await store.get('progress'), { value: progress, expires_at })
    // Overwriting replaces the value and its time to live.
    await store.set('progress', { value: 1 })
    assert.deepEqual(await store.get('progress'), { value: 1, expires_at: null })
    for (const ttl_seconds of [0, -1, Number.NaN])
      await failsWith(store.set('status', { value: 1, ttl_seconds }), 'bad_request')
  },
  'get returns the value as it was stored': async () => {
    const values = [null, false, 0, '', 'é', [1, [2]], { a: { b: null } }, 1.5, 'x'.repeat(100_000)]
    for (const value of values) {
      await store.set('value', { value })
      assert.deepEqual((await store.get('value')).value, value)
    }
    await store.set('progress', { value: { step: 4, total: 10, score: 1 } })
    const entry = await store.get('progress')
    const state = entry.value as { step: number; total: number; score: number }
    assert.equal(`Step ${state.step} of ${state.total}`, 'Step 4 of 10')
    await failsWith(store.get('none'), 'key_not_found')
  },
  'delete removes a key': async () => {
    await store.set('temp_state', { value: 1 })
    assert.deepEqual(await store.delete('temp_state'), { deleted: true, ok: true })
    await failsWith(store.get('temp_state'), 'key_not_found')
    assert.deepEqual(await store.delete('temp_state'), { deleted: false, ok: true })
  },
  'list returns the keys with a prefix': async () => {
    for (const key of ['run_3', 'run_1', 'runs', 'run_2']) await store.set(key, { value: key })
    const { keys, truncated } = await store.list({ prefix: 'run_' })
    assert.deepEqual([keys, truncated], [['run_1', 'run_2', 'run_3'], false])
    const some = await store.list({ prefix: 'run_', limit: 2 })
    assert.deepEqual([some.keys, some.truncated], [['run_1', 'run_2'], true])
  },
  'a batch is applied as a whole or not at all': async () => {
    await store.set('temp_state', { value: 1 })
    const operations: StoreOperation[] = [
      { op: 'set', key: 'result', value: { score: 0.95 }, ttl_seconds: 7200 },
      { op: 'delete', key: 'temp_state' },
    ]
    assert.deepEqual(await store.batch(operations), { applied: 2, ok: true })
    assert.deepEqual((await store.get('result')).value, { score: 0.95 })
    await failsWith(store.get('temp_state'), 'key_not_found')
    const wrong = { op: 'set', key: 'c', value: 1, ttl_seconds: -1 } as const
    await assert.rejects(
      store.batch([{ op: 'delete', key: 'result' }, { op: 'set', key: 'b', value: 1 }, wrong]),
      /operations\[2\]/,
    )
    await failsWith(store.get('b'), 'key_not_found')
    assert.deepEqual((await store.get('result')).value, { score: 0.95 })
  },
  'the same over HTTP': async () => {
    const value = { step: 3, score: 0.91 }
    const put = await call('PUT', '/v1/store/http', { value, ttl_seconds: 3600 })
    assert.deepEqual([put.status, put.body.ok], [200, true])
    const got = await call('GET', '/v1/store/http')
    assert.deepEqual(got.body, { value, expires_at: put.body.expires_at })
    assert.ok(isIso(got.body.expires_at))
    const missing = await call('GET', '/v1/store/none')
    assert.deepEqual([missing.status, missing.body.error.code], [404, 'key_not_found'])
    assert.deepEqual((await call('DELETE', '/v1/store/http')).body, { deleted: true, ok: true })
    const operations = ['web_3', 'web_1', 'web_2'].map((key) => ({ op: 'set', key, value: 1 }))
    const batch = { operations: [...operations, { op: 'delete', key: 'none' }] }
    assert.deepEqual((await call('POST', '/v1/store/batch', batch)).body, { applied: 4, ok: true })
    const { keys, truncated } = (await call('GET', '/v1/store?prefix=web_&limit=100')).body
    assert.deepEqual([keys, truncated], [['web_1', 'web_2', 'web_3'], false])
    assert.equal((await call('PUT', '/v1/store/http', { ttl: 1 })).status, 400)
  },
  'an agent stores each step': async () => {
    const steps = ['echo one', 'exit 3', 'echo three']
    for (let step = 0; step < steps.length; step++) {
      const { stdout, exitCode } = await sandbox.exec.run(steps[step]!)
      await store.set(`step_${step}`, { value: { output: stdout, ok: exitCode === 0 } })
    }
    const { keys } = await store.list({ prefix: 'step_' })
    const entries = await Promise.all(keys.map((key) => store.get(key)))
    assert.deepEqual(
      entries.map(({ value }) => value),
      [
        { output: 'one\n', ok: true },
        { output: '', ok: false },
        { output: 'three\n', ok: true },
      ],
    )
  },
  'forks read what was stored before, each its own copy': async () => {
    const sharedConfig = { model: 'small', tries: 3 }
    await store.set('config', { value: sharedConfig })
    const branches = await Promise.all([sandbox.fork(), sandbox.fork(), sandbox.fork()])
    for (const [index, branch] of branches.entries()) {
      assert.deepEqual((await branch.store.get('config')).value, sharedConfig)
      await branch.store.set('config', { value: index })
    }
    const values = await Promise.all(branches.map(async (branch) => (await branch.store.get('config')).value))
    assert.deepEqual(values, [0, 1, 2])
    assert.deepEqual((await store.get('config')).value, sharedConfig)
    await Promise.all(branches.map((branch) => branch.kill()))
  },
  'a value with a time to live is gone after it': async () => {
    await store.set('api_response', { value: { cached: true }, ttl_seconds: 300 })
    assert.deepEqual((await store.get('api_response')).value, { cached: true })
    const { expires_at } = await store.set('short', { value: 1, ttl_seconds: 1 })
    await sleep(Date.parse(expires_at!) - Date.now() + 10)
    await failsWith(store.get('short'), 'key_not_found')
    assert.deepEqual((await store.list({ prefix: 'short' })).keys, [])
    assert.deepEqual(await store.delete('short'), { deleted: false, ok: true })
  },
  'keys are plain strings': async () => {
    for (const key of ['agent_:1:_step_:2:', 'a/b/c', 'batch', 'é ?#%&=+', '.', '..', 'x'.repeat(512)]) {
      await store.set(key, { value: key })
      assert.equal((await store.get(key)).value, key)
      assert.equal((await store.delete(key)).deleted, true)
    }
    for (const key of ['', 'x'.repeat(513)]) await failsWith(store.set(key, { value: 1 }), 'bad_request')
  },
  'a restore brings back the store of the checkpoint': async () => {
    await store.set('kept', { value: 'before' })
    const { id } = await sandbox.createCheckpoint('store')
    await store.batch([
      { op: 'set', key: 'kept', value: 'after' },
      { op: 'set', key: 'new', value: 1 },
    ])
    await sandbox.restoreCheckpoint(id)
    assert.equal((await store.get('kept')).value, 'before')
    await failsWith(store.get('new'), 'key_not_found')
  },
})

testRows('iris.md', {
  'sandbox.store.set(key, { value, ttl_seconds })': async () => {
    const { ok, expires_at } = await store.set('row', { value: [1], ttl_seconds: 60 })
    assert.ok(ok && isIso(expires_at))
    await failsWith(store.set('row', { value: 'x'.repeat(1024 * 1024) }), 'bad_request', 'body_too_large')
  },
  'sandbox.store.get(key)': async () => {
    await store.set('row', { value: [1] })
    assert.deepEqual(await store.get('row'), { value: [1], expires_at: null })
    await failsWith(store.get('no row'), 'key_not_found')
  },
  'sandbox.store.delete(key)': async () => {
    assert.deepEqual(await store.delete('no row'), { deleted: false, ok: true })
  },
  'sandbox.store.list({ prefix })': async () => {
    await store.batch(
      Array.from({ length: 101 }, (_, index) => ({ op: 'set', key: `many_${index}`, value: index })),
    )
    const { keys, truncated } = await store.list({ prefix: 'many_' })
    assert.deepEqual([keys.length, truncated], [100, true])
    assert.deepEqual(keys, [...keys].sort())
  },
  'sandbox.store.batch(operations)': async () => {
    const many = Array.from({ length: 1001 }, () => ({ op: 'delete', key: 'a' }) as const)
    assert.equal((await store.batch(many.slice(1))).applied, 1000)
    await failsWith(store.batch(many), 'bad_request')
  },
  'sandbox.fork()': async () => {
    await store.set('row', { value: 'parent' })
    await using fork = await sandbox.fork()
    await fork.store.set('row', { value: 'fork' })
    assert.equal((await store.get('row')).value, 'parent')
  },
  'PUT /v1/store/{key}': async () => {
    assert.deepEqual((await call('PUT', '/v1/store/row', { value: 1 })).body, { ok: true, expires_at: null })
  },
  'GET /v1/store/{key}': async () => {
    assert.equal((await call('GET', '/v1/store/no%20row')).body.error.code, 'key_not_found')
  },
  'DELETE /v1/store/{key}': async () => {
    assert.deepEqual((await call('DELETE', '/v1/store/row')).body, { deleted: true, ok: true })
  },
  'GET /v1/store': async () => {
    const { keys, truncated } = (await call('GET', '/v1/store?prefix=many_&limit=2')).body
    assert.deepEqual([keys, truncated], [['many_0', 'many_1'], true])
  },
  'POST /v1/store/batch': async () => {
    const body = { operations: [{ op: 'delete', key: 'many_0' }] }
    assert.deepEqual((await call('POST', '/v1/store/batch', body)).body, { applied: 1, ok: true })
  },
})
