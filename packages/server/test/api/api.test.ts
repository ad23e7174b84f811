import assert from 'node:assert/strict'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { newId, type Sandbox, sandbox, sandboxPage } from '@islet/contract'
import { errorOf, startTestApi, type TestApi } from '../support/server.ts'

describe('the API', () => {
  let api: TestApi
  before(async () => {
    api = await startTestApi()
  })
  after(() => api[Symbol.asyncDispose]())

  it('makes, finds, lists, changes and deletes a sandbox', async () => {
    const created = await api.call('POST', '/v1/sandboxes', { name: 'one', env: { A: 'b' } })
    assert.equal(created.status, 201)
    const { id } = sandbox.parse(await created.json())
    assert.equal(sandbox.parse(await (await api.call('GET', `/v1/sandboxes/${id}`)).json()).name, 'one')
    const page = sandboxPage.parse(await (await api.call('GET', '/v1/sandboxes?limit=5')).json())
    assert.ok(page.sandboxes.some((found) => found.id === id))
    const renamed = (await (await api.call('PATCH', `/v1/sandboxes/${id}`, { name: null })).json()) as Sandbox
    assert.equal(renamed.name, null)
    assert.equal((await api.call('GET', `/v1/sandboxes/${id}/metrics`)).status, 200)
    const deleted = (await (await api.call('DELETE', `/v1/sandboxes/${id}`)).json()) as Sandbox
    assert.equal(deleted.status, 'stopped')
    for (const change of [
      { env: { A: 'c' } },
      { name: 'two' },
      { metadata: {} },
      { resources: { pids: 99 } },
    ]) {
      const refused = await errorOf(await api.call('PATCH', `/v1/sandboxes/${id}`, change))
      assert.deepEqual([refused.status, refused.code], [409, 'invalid_state'])
    }
    const gone = await (await api.call('GET', `/v1/sandboxes/${id}`)).json()
    assert.deepEqual(gone, { ...deleted, awake: null })
  })

  it('answers an id that cannot exist like one that does not', async () => {
    const ids = [newId('sandbox'), 'x', 'sbx-', `${newId('sandbox')}x`, 'SBX-1', '%00', 'a%2Fb', '..%2f..']
    for (const id of ids) {
      const response = await api.call('GET', `/v1/sandboxes/${id}`)
      assert.equal(response.status, 404, id)
      assert.equal((await errorOf(response)).code, 'sandbox_not_found', id)
    }
    const { id } = await api.createSandbox()
    for (const pid of [newId('process'), 'x', '%00']) {
      const response = await api.call('GET', `/v1/sandboxes/${id}/processes/${pid}`)
      assert.equal((await errorOf(response)).code, 'process_not_found', pid)
    }
    const malformed = await errorOf(await api.call('GET', '/v1/sandboxes/%zz'))
    assert.deepEqual([malformed.status, malformed.code], [400, 'bad_request'])
  })

  it('tells no such route from not with that method', async () => {
    for (const path of ['/v1', '/v2/sandboxes', '/v1/sandboxes/', '/favicon.ico', '/v1/sandboxes/x/y/z']) {
      const response = await api.call('GET', path)
      assert.equal(response.status, 404, path)
      assert.equal((await errorOf(response)).code, 'route_not_found')
    }
    const response = await api.call('PUT', '/v1/sandboxes')
    assert.equal(response.status, 405)
    assert.equal(response.headers.get('allow'), 'GET, HEAD, POST')
    assert.equal((await errorOf(response)).code, 'method_not_allowed')
  })

  it('answers HEAD wherever GET answers, without a body', async () => {
    for (const path of ['/health', '/v1/sandboxes', '/openapi.json', '/docs', '/v1/runtimes']) {
      const got = await api.call('GET', path)
      const head = await api.call('HEAD', path)
      assert.equal(head.status, 200, path)
      assert.equal(head.headers.get('content-length'), String((await got.arrayBuffer()).byteLength))
      assert.equal(await head.text(), '')
    }
    assert.equal((await api.call('HEAD', '/v1/sandboxes/x')).status, 404)
  })

  it('echoes a sane request id and makes one otherwise', async () => {
    const idFor = async (given?: string) => {
      const response = await api.call(
        'GET',
        '/health',
        undefined,
        given ? { headers: { 'X-Request-Id': given } } : {},
      )
      await response.text()
      return response.headers.get('x-request-id')!
    }
    assert.equal(await idFor('my-id.1'), 'my-id.1')
    for (const given of [undefined, 'with space', 'x'.repeat(129), '<script>']) {
      assert.match(await idFor(given), /^req-[a-z0-9]{20}$/)
    }
    assert.notEqual(await idFor(), await idFor())
  })

  it('tells browsers not to guess, not to keep, and not to share across origins', async () => {
    const { headers } = await api.call('GET', '/v1/info', undefined, {
      headers: { Origin: 'https://elsewhere' },
    })
    assert.equal(headers.get('x-content-type-options'), 'nosniff')
    assert.equal(headers.get('cache-control'), 'no-store')
    assert.equal(headers.get('access-control-allow-origin'), null)
  })

  it('keeps the text of an unknown error in the log, under the request id it answers with', async () => {
    await using broken = await startTestApi()
    const images = join(broken.dataDir, 'images')
    rmSync(images, { recursive: true })
    writeFileSync(images, 'not a directory')
    const response = await broken.call('GET', '/v1/images')
    const error = await errorOf(response)
    assert.deepEqual([error.status, error.code], [500, 'internal'])
    assert.doesNotMatch(JSON.stringify(error), /ENOTDIR|islet-api-/)
    const requestId = response.headers.get('x-request-id')!
    assert.equal(error.details?.requestId, requestId)
    const line = broken.logged.find((text) => text.includes(requestId) && text.includes('"level":"error"'))
    assert.match(line ?? '', /ENOTDIR.*stack/s)
  })

  it('logs the path of a request but not its query, its key or its command', async () => {
    const { id } = await api.createSandbox()
    await api.call('POST', `/v1/sandboxes/${id}/exec`, {
      command: 'echo sesame',
      stdin: 'sesame',
      env: { TOKEN: 'sesame' },
    })
    await api.call('GET', `/v1/sandboxes/${id}/files?path=/sesame`)
    const all = api.logged.join('')
    assert.doesNotMatch(all, /sesame|tttttttt/)
    assert.match(all, new RegExp(`"path":"/v1/sandboxes/${id}/files"`))
  })

  it('serves a hundred commands at once', async () => {
    const { id } = await api.createSandbox()
    const numbers = Array.from({ length: 100 }, (_, index) => `${index}\n`)
    const answers = await Promise.all(
      numbers.map(async (_, index) => {
        const response = await api.call('POST', `/v1/sandboxes/${id}/exec`, { command: ['echo', `${index}`] })
        return ((await response.json()) as { stdout: string }).stdout
      }),
    )
    assert.deepEqual(answers, numbers)
  })

  it('makes one sandbox for one Idempotency-Key, and refuses a key that is not sane', async () => {
    const create = (key: string, input = {}) =>
      api.call('POST', '/v1/sandboxes', input, { headers: { 'Idempotency-Key': key } })
    const idOf = async (response: Response) => sandbox.parse(await response.json()).id
    const first = await idOf(await create('key-1'))
    assert.equal(await idOf(await create('key-1')), first)
    assert.notEqual(await idOf(await create('key-2')), first)
    assert.equal((await errorOf(await create('key-1', { name: 'other' }))).code, 'idempotency_mismatch')
    for (const key of ['x'.repeat(256), 'a b'])
      assert.equal((await errorOf(await create(key))).code, 'invalid_header')
  })
})
