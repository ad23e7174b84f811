import assert from 'node:assert/strict'
import { request } from 'node:http'
import { after, before, describe, test } from 'node:test'
import { LIMITS, newId } from '@islet/contract'
import { errorOf, startTestApi, TEST_KEY, type TestApi } from '../support/server.ts'
import { answered, StoreCalls } from '../support/store.ts'

let api: TestApi
let store: StoreCalls
let token: string
before(async () => {
  api = await startTestApi()
  const sandbox = await api.createSandbox()
  store = new StoreCalls(api, sandbox.id)
  token = sandbox.token
})
after(() => api[Symbol.asyncDispose]())

const another = async () => new StoreCalls(api, (await api.createSandbox()).id)
const refused = async (response: Promise<Response>) => errorOf(await response)

describe('with a sandbox token the published addresses answer as they are published', () => {
  const own = (method: string, path: string, body?: unknown) =>
    answered(api.call(method, path, body, { headers: { Authorization: `Bearer ${token}` } }))

  test('set, get, delete, list and batch', async () => {
    const value = { step: 3, score: 0.91 }
    const before = Date.now()
    const made = await own('PUT', '/v1/store/progress', { value, ttl_seconds: 3600 })
    const expiresAt = Date.parse(String(made.body.expires_at))
    assert.ok(expiresAt >= before + 3_600_000 && expiresAt <= Date.now() + 3_600_001)
    assert.deepEqual(made, { status: 200, body: { ok: true, expires_at: made.body.expires_at } })
    assert.deepEqual(await own('GET', '/v1/store/progress'), {
      status: 200,
      body: { value, expires_at: made.body.expires_at },
    })
    assert.deepEqual((await own('PUT', '/v1/store/progress', { value })).body.expires_at, null)
    for (const key of ['run_3', 'run_1', 'run_2', 'other'])
      await own('PUT', `/v1/store/${key}`, { value: key })
    assert.deepEqual(await own('GET', '/v1/store?prefix=run_&limit=100'), {
      status: 200,
      body: { keys: ['run_1', 'run_2', 'run_3'], truncated: false },
    })
    const operations = [
      { op: 'set', key: 'result', value: { score: 0.95 }, ttl_seconds: 7200 },
      { op: 'delete', key: 'other' },
    ]
    assert.deepEqual(await own('POST', '/v1/store/batch', { operations }), {
      status: 200,
      body: { applied: 2, ok: true },
    })
    assert.deepEqual(await own('DELETE', '/v1/store/result'), {
      status: 200,
      body: { deleted: true, ok: true },
    })
    assert.deepEqual((await own('DELETE', '/v1/store/result')).body, { deleted: false, ok: true })
    const missing = await own('GET', '/v1/store/other')
    assert.equal(missing.status, 404)
    assert.equal((missing.body.error as { code: string }).code, 'key_not_found')
  })

  test('both families of addresses are the same store', async () => {
    await own('PUT', '/v1/store/shared', { value: 1 })
    assert.equal((await store.get('shared')).body.value, 1)
    const operation = { op: 'get', key: 'shared' }
    assert.equal((await own('POST', '/v1/store/key', operation)).body.value, 1)
  })

  test('a key for the whole server names no sandbox, and is told so', async () => {
    const error = await refused(api.call('GET', '/v1/store'))
    assert.equal(error.code, 'forbidden')
    assert.match(error.hint ?? '', /\/v1\/sandboxes\/\{id\}/)
  })
})

describe('keys', () => {
  const keys = [
    'a/b/c',
    '/',
    '%',
    '%2F',
    '100%25',
    'a+b',
    'a b',
    ' ',
    'batch',
    'key',
    '42',
    '-0',
    '__proto__',
    'constructor',
    'ä€😀',
    'a\nb\t\u0001',
    '\0',
    'a\0b',
    'a\0',
    '"quoted"',
    "'; DROP TABLE store; --",
    '_',
    '*',
    '?x=1',
    '#x',
    '\uffff',
    '\u{10ffff}',
    'x'.repeat(LIMITS.storeKeyBytes),
    'é'.repeat(LIMITS.storeKeyBytes / 2),
  ]

  test('any text is a key of its own', async () => {
    const store = await another()
    for (const [index, key] of keys.entries())
      assert.equal((await store.set(key, { value: index })).status, 200, JSON.stringify(key))
    for (const [index, key] of keys.entries())
      assert.equal((await store.get(key)).body.value, index, JSON.stringify(key))
    const sorted = [...keys].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
    assert.deepEqual((await store.list('?limit=1000')).body, { keys: sorted, truncated: false })
    const paged: string[] = []
    for (let query: string | undefined = '?limit=3'; query; ) {
      const { body } = await store.list(query)
      assert.equal(body.cursor !== undefined, body.truncated)
      paged.push(...(body.keys as string[]))
      query = body.cursor === undefined ? undefined : `?limit=3&cursor=${body.cursor}`
    }
    assert.deepEqual(paged, sorted)
    for (const key of keys) assert.deepEqual((await store.remove(key)).body, { deleted: true, ok: true })
    assert.deepEqual((await store.list('')).body.keys, [])
  })

  test('the two that no URL can end in travel in the body', async () => {
    const path = `${store.path}/key`
    for (const key of ['.', '..']) {
      const operate = (operation: object) => answered(api.call('POST', path, { key, ...operation }))
      assert.equal((await operate({ op: 'get' })).status, 404)
      assert.deepEqual((await operate({ op: 'set', value: [key] })).body, { ok: true, expires_at: null })
      assert.deepEqual((await operate({ op: 'get' })).body, { value: [key], expires_at: null })
      assert.deepEqual((await operate({ op: 'delete' })).body, { deleted: true, ok: true })
      assert.deepEqual((await operate({ op: 'delete' })).body, { deleted: false, ok: true })
    }
  })

  test('a key that is empty, too long or not text is refused', async () => {
    const tooLong = await refused(
      api.call('PUT', store.at('x'.repeat(LIMITS.storeKeyBytes + 1)), { value: 1 }),
    )
    assert.deepEqual([tooLong.status, tooLong.code], [400, 'bad_request'])
    assert.match(tooLong.message, /512 bytes/)
    assert.equal((await store.set('é'.repeat(257), { value: 1 })).status, 400)
    for (const key of ['', '\ud800', 'x\udfff', 'x'.repeat(513)])
      assert.equal((await store.batch([{ op: 'set', key, value: 1 }])).status, 400, JSON.stringify(key))
  })

  test('an address that is not percent-encoded UTF-8 is refused, and nothing is written', async () => {
    const store = await another()
    for (const text of ['%zz', '%', 'a%2Fb%zz', '%C3', '%ED%A0%80', '%ff', '%E2%82']) {
      const status = await new Promise<number | undefined>((resolve, reject) => {
        const headers = { authorization: `Bearer ${TEST_KEY}`, 'content-type': 'application/json' }
        const path = `${store.path}/${text}`
        request({ port: api.port, path, method: 'PUT', headers }, (response) => {
          response.resume()
          resolve(response.statusCode)
        })
          .on('error', reject)
          .end('{"value":1}')
      })
      assert.equal(status, 400, text)
    }
    assert.deepEqual((await store.list('')).body.keys, [])
  })
})

describe('a batch', () => {
  test('applies in order, the later operation on a key wins', async () => {
    const store = await another()
    const operations = [
      { op: 'set', key: 'a', value: 1 },
      { op: 'set', key: 'a', value: 2, ttl_seconds: 60 },
      { op: 'set', key: 'b', value: 1 },
      { op: 'delete', key: 'b' },
      { op: 'delete', key: 'c' },
      { op: 'set', key: 'c', value: null },
      { op: 'set', key: '..', value: 3 },
    ]
    assert.deepEqual((await store.batch(operations)).body, { applied: 7, ok: true })
    assert.equal((await store.get('a')).body.value, 2)
    assert.deepEqual((await store.list('')).body.keys, ['..', 'a', 'c'])
    assert.deepEqual((await store.batch([])).body, { applied: 0, ok: true })
  })

  test('one operation that is not valid is named, and none is applied', async () => {
    const store = await another()
    const good = { op: 'set', key: 'good', value: 1 }
    const bad = [
      { op: 'set', key: 'x' },
      { op: 'set', key: '', value: 1 },
      { op: 'set', key: 'x', value: 1, ttl_seconds: 0 },
      { op: 'set', key: 'x', value: 'x'.repeat(LIMITS.storeValueBytes) },
      { op: 'delete' },
      { op: 'delete', key: 'x', value: 1 },
      { op: 'get', key: 'x' },
      { key: 'x', value: 1 },
      null,
      'set',
    ]
    for (const operation of bad) {
      const path = `${store.path}/batch`
      const error = await refused(api.call('POST', path, { operations: [good, good, operation, good] }))
      assert.deepEqual([error.status, error.code], [400, 'bad_request'])
      assert.match(error.message, /^operations\[2\]/, JSON.stringify(operation)?.slice(0, 80))
    }
    assert.deepEqual((await store.list('')).body.keys, [])
  })

  test('has at most 1,000 operations', async () => {
    const store = await another()
    const operations = Array.from({ length: 1001 }, (_, n) => ({ op: 'set', key: `k${n}`, value: n }))
    assert.equal((await store.batch(operations)).status, 400)
    assert.deepEqual((await store.list('')).body.keys, [])
    assert.deepEqual((await store.batch(operations.slice(1))).body, { applied: 1000, ok: true })
  })
})

describe('the store of a sandbox', () => {
  test('is its own', async () => {
    const [one, two] = [await another(), await another()]
    await one.set('same', { value: 1 })
    assert.equal((await two.get('same')).status, 404)
    await two.set('same', { value: 2 })
    await two.remove('same')
    assert.equal((await one.get('same')).body.value, 1)
  })

  test('is refused once it is deleted, like its files', async () => {
    const { id } = await api.createSandbox()
    const gone = new StoreCalls(api, id)
    await gone.set('key', { value: 1 })
    await api.call('DELETE', `/v1/sandboxes/${id}`)
    const calls: [string, string, unknown?][] = [
      ['GET', gone.at('key')],
      ['PUT', gone.at('key'), { value: 1 }],
      ['DELETE', gone.at('key')],
      ['GET', gone.path],
      ['POST', `${gone.path}/batch`, { operations: [] }],
    ]
    for (const call of calls) assert.equal((await refused(api.call(...call))).code, 'invalid_state')
    const files = await refused(api.call('GET', `/v1/sandboxes/${id}/files?path=x`))
    assert.equal(files.code, 'invalid_state')
    const never = new StoreCalls(api, newId('sandbox'))
    assert.equal((await refused(api.call('GET', never.at('key')))).code, 'sandbox_not_found')
  })

  test('takes many writers at once', async () => {
    const store = await another()
    await Promise.all(
      Array.from({ length: 100 }, async (_, n) => {
        await store.set(`w${n % 10}`, { value: n })
        const { status, body } = await store.get(`w${n % 10}`)
        assert.equal(status, 200)
        assert.equal((body.value as number) % 10, n % 10)
      }),
    )
    assert.equal(((await store.list('')).body.keys as string[]).length, 10)
  })

  test('wakes a suspended sandbox, like every other use', async () => {
    const { id } = await api.createSandbox()
    const path = `/v1/sandboxes/${id}`
    await api.call('PUT', `${path}/store/a`, { value: 1 })
    await api.call('POST', `${path}/hibernate`)
    const answer = await api.call('GET', `${path}/store/a`)
    assert.equal(answer.headers.get('islet-auto-resumed'), 'true')
    assert.deepEqual(await answer.json(), { value: 1, expires_at: null })
    assert.equal(((await (await api.call('GET', path)).json()) as { status: string }).status, 'running')
  })
})
