import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { LIMITS } from '@islet/contract'
import { errorOf, startTestApi, type TestApi, until } from '../support/server.ts'
import { StoreCalls } from '../support/store.ts'

let api: TestApi
let store: StoreCalls
before(async () => {
  api = await startTestApi()
  store = await another()
})
after(() => api[Symbol.asyncDispose]())

const another = async () => new StoreCalls(api, (await api.createSandbox()).id)
const refused = async (response: Promise<Response>) => errorOf(await response)

describe('values', () => {
  test('any JSON comes back as it went in', async () => {
    const values = [
      null,
      true,
      0,
      -1.5e-7,
      9007199254740991,
      '',
      'text "\\ \u0000 \u2028 😀',
      '\ud800',
      [],
      {},
      [null],
      { '': 1, a: { b: [{}] } },
      Number.MAX_VALUE,
    ]
    for (const value of values) {
      assert.equal((await store.set('value', { value })).status, 200)
      assert.deepEqual((await store.get('value')).body, { value, expires_at: null })
    }
  })

  test('names of fields that JavaScript treats in its own way survive', async () => {
    const text = '{"value":{"__proto__":{"a":1},"constructor":2,"2":3,"1":4}}'
    await store.setText('proto', text)
    const { value } = JSON.parse(await (await api.call('GET', store.at('proto'))).text())
    assert.deepEqual(Object.entries(value), Object.entries(JSON.parse(text).value))
  })

  test('numbers follow JSON: what is too large is refused, the rest is as JavaScript reads it', async () => {
    const raw = (text: string) => store.setText('number', text)
    assert.equal((await raw('{"value":1e400}')).status, 400)
    assert.equal((await raw('{"value":{"a":[-1e999]}}')).status, 400)
    assert.equal((await raw('{"value":12345678901234567890}')).status, 200)
    assert.equal((await store.get('number')).body.value, Number('12345678901234567890'))
    assert.equal((await raw('{"value":-0}')).status, 200)
    assert.equal((await store.get('number')).body.value, 0)
  })

  test('a value has a size', async () => {
    const most = 'x'.repeat(LIMITS.storeValueBytes - 2)
    assert.equal((await store.set('large', { value: most })).status, 200)
    assert.equal((await store.get('large')).body.value, most)
    for (const value of [`${most}x`, [most], `${'é'.repeat(LIMITS.storeValueBytes / 2)}`]) {
      const error = await refused(api.call('PUT', store.at('large'), { value }))
      assert.deepEqual([error.status, error.code], [400, 'bad_request'])
      assert.match(error.message, /value: .*1048576 bytes/)
    }
    assert.equal((await store.get('large')).body.value, most)
  })

  test('a value has a depth', async () => {
    const nested = (depth: number) => `{"value":${'[{"a":'.repeat(depth / 2)}1${'}]'.repeat(depth / 2)}}`
    assert.equal((await store.setText('deep', nested(LIMITS.jsonDepth))).status, 200)
    assert.equal((await store.get('deep')).status, 200)
    for (const depth of [LIMITS.jsonDepth + 2, 100_000]) {
      assert.equal((await store.setText('deep', nested(depth))).status, 400)
    }
  })

  test('no value is an error, null is a value', async () => {
    for (const body of [{}, { ttl_seconds: 1 }, [], 'null', { value: 1, other: 2 }])
      assert.equal((await store.set('none', body)).status, 400, JSON.stringify(body))
    assert.equal((await store.get('none')).status, 404)
    await store.set('none', { value: null })
    assert.deepEqual((await store.get('none')).body, { value: null, expires_at: null })
  })
})

describe('expiry', () => {
  test('a ttl is a positive number', async () => {
    for (const ttl of [0, -1, '60', null, true, [], 1e12, LIMITS.storeTtlSeconds + 1]) {
      const error = await refused(api.call('PUT', store.at('ttl'), { value: 1, ttl_seconds: ttl }))
      assert.deepEqual([error.status, error.code], [400, 'bad_request'], String(ttl))
      assert.match(error.message, /^ttl_seconds/)
    }
    assert.equal((await store.setText('ttl', '{"value":1,"ttl_seconds":1e400}')).status, 400)
    for (const ttl of [0.5, 1e-9, 60, LIMITS.storeTtlSeconds])
      assert.equal((await store.set('ttl', { value: 1, ttl_seconds: ttl })).status, 200, String(ttl))
  })

  test('an expired key is gone for every call at once', async () => {
    const store = await another()
    await store.set('kept', { value: 1 })
    await store.set('short', { value: 1, ttl_seconds: 0.001 })
    await until(async () => (await store.get('short')).status === 404)
    assert.deepEqual((await store.list('')).body.keys, ['kept'])
    assert.deepEqual((await store.remove('short')).body, { deleted: false, ok: true })
    await store.set('short', { value: 2 })
    assert.deepEqual((await store.get('short')).body, { value: 2, expires_at: null })
  })

  test('overwriting without a ttl takes the expiry away', async () => {
    await store.set('again', { value: 1, ttl_seconds: 0.2 })
    await store.set('again', { value: 2 })
    await store.set('witness', { value: 1, ttl_seconds: 0.2 })
    await until(async () => (await store.get('witness')).status === 404)
    assert.deepEqual((await store.get('again')).body, { value: 2, expires_at: null })
  })
})

describe('listing', () => {
  test('a prefix matches itself and nothing like it', async () => {
    const store = await another()
    const keys = ['a', 'a%', 'a%b', 'a_b', 'ab', 'A', 'a\u{10ffff}', 'a\u{10ffff}x', 'b', '\ud7ff', '\ue000']
    await store.batch(keys.map((key) => ({ op: 'set', key, value: 1 })))
    const found = async (prefix: string) =>
      (await store.list(`?prefix=${encodeURIComponent(prefix)}`)).body.keys as string[]
    const sorted = [...keys].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
    for (const prefix of ['a', 'a%', 'a_', 'A', 'a\u{10ffff}', 'x', '', '\ud7ff', '\ue000', 'b']) {
      const expected = sorted.filter((key) => key.startsWith(prefix))
      assert.deepEqual(await found(prefix), expected, prefix)
    }
  })

  test('it says when there are more', async () => {
    const store = await another()
    const operations = Array.from({ length: 101 }, (_, n) => ({ op: 'set', key: `k${1000 + n}`, value: n }))
    await store.batch(operations)
    const first = (await store.list('')).body as { keys: string[]; truncated: boolean; cursor: string }
    assert.deepEqual([first.keys.length, first.truncated], [100, true])
    const rest = (await store.list(`?cursor=${first.cursor}`)).body
    assert.deepEqual(rest, { keys: ['k1100'], truncated: false })
    // Keys that come or go meanwhile do not shift the others.
    await store.batch([
      { op: 'delete', key: first.keys.at(-1) },
      { op: 'set', key: 'a', value: 1 },
      { op: 'set', key: 'k1100a', value: 1 },
    ])
    const after = async (query: string) => (await store.list(query)).body.keys
    assert.deepEqual(await after(`?cursor=${first.cursor}`), ['k1100', 'k1100a'])
    assert.deepEqual(await after(`?cursor=${first.cursor}&prefix=k1100a`), ['k1100a'])
    assert.deepEqual(await after(`?cursor=${first.cursor}&prefix=a`), [])
    assert.deepEqual(await after(`?cursor=${first.cursor}&prefix=z`), [])
    await store.batch(['a', 'k1100a'].map((key) => ({ op: 'delete', key })))
    await store.set(first.keys.at(-1)!, { value: 1 })
    assert.deepEqual((await store.list('?limit=101')).body.truncated, false)
    assert.deepEqual((await store.list('?limit=1&prefix=k11')).body, { keys: ['k1100'], truncated: false })
    for (const limit of ['0', '-1', '1001', 'x', '1.5', ''])
      assert.equal((await store.list(`?limit=${limit}`)).status, 400, limit)
    for (const cursor of ['', '!', 'a', 'YQ==', '_w', 'x'.repeat(2000)])
      assert.equal((await store.list(`?cursor=${cursor}`)).status, 400, cursor)
  })
})
