import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import {
  type ErrorBody,
  newId,
  ROUTES,
  type Route,
  type Sandbox,
  sandbox,
  sandboxPage,
} from '@islet/contract'
import { createApi } from './api.ts'
import { OPEN_PAGES } from './middleware/auth.ts'
import { startTestApi, type TestApi, until } from './testing.ts'

const errorOf = async (response: Response): Promise<ErrorBody['error']> =>
  ((await response.json()) as ErrorBody).error

describe('the API', () => {
  let api: TestApi
  before(async () => {
    api = await startTestApi()
  })
  after(() => api[Symbol.asyncDispose]())

  it('mounts every route of the table and nothing else', () => {
    const { app } = createApi({ config: { host: 'x' } } as never)
    const mounted = app.routes
      .filter(({ method }) => method !== 'ALL')
      .map(({ method, path }) => `${method} ${path}`)
    const wanted = Object.values<Route>(ROUTES).map(
      ({ method, path }) => `${method} ${path.replace(/\{(\w+)\}/g, ':$1')}`,
    )
    assert.deepEqual(mounted.sort(), [...wanted, ...OPEN_PAGES.map((path) => `GET ${path}`)].sort())
  })

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
  })

  it('answers an id that cannot exist like one that does not', async () => {
    const ids = [
      newId('sandbox'),
      'x',
      'sbx-',
      `${newId('sandbox')}x`,
      'SBX-1',
      '%00',
      'a%2Fb',
      '%zz',
      '..%2f..',
    ]
    for (const id of ids) {
      const response = await api.call('GET', `/v1/sandboxes/${id}`)
      assert.equal(response.status, 404, id)
      assert.equal((await errorOf(response)).code, 'sandbox_not_found', id)
    }
    const { id } = await api.control.create({})
    for (const pid of [newId('process'), 'x', '%00']) {
      const response = await api.call('GET', `/v1/sandboxes/${id}/processes/${pid}`)
      assert.equal((await errorOf(response)).code, 'process_not_found', pid)
    }
  })

  it('tells no such route from not with that method', async () => {
    for (const path of [
      '/',
      '/v1',
      '/v2/sandboxes',
      '/v1/sandboxes/',
      '/favicon.ico',
      '/v1/sandboxes/x/y/z',
    ]) {
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

  it('says ready with a status that a probe understands', async () => {
    assert.equal((await api.call('GET', '/ready')).status, 200)
    api.control.notReady = 'no runc'
    const response = await api.call('GET', '/ready')
    api.control.notReady = undefined
    assert.equal(response.status, 503)
    assert.deepEqual(await response.json(), { ready: false, reason: 'no runc' })
  })

  it('keeps the text of an unknown error in the log, under the request id it answers with', async () => {
    const { id } = await api.control.create({})
    const response = await api.call('POST', `/v1/sandboxes/${id}/exec`, { command: 'fault' })
    assert.equal(response.status, 500)
    const error = await errorOf(response)
    assert.equal(error.code, 'internal')
    assert.doesNotMatch(JSON.stringify(error), /secret inside/)
    const requestId = response.headers.get('x-request-id')!
    assert.equal(error.details?.requestId, requestId)
    const line = api.logged.find((text) => text.includes(requestId) && text.includes('"level":"error"'))
    assert.match(line ?? '', /secret inside.*stack/s)
  })

  it('logs the path of a request but not its query, its key or its command', async () => {
    const { id } = await api.control.create({})
    await api.call('POST', `/v1/sandboxes/${id}/exec`, { command: 'echo sesame', env: { TOKEN: 'sesame' } })
    await api.call('GET', `/v1/sandboxes/${id}/files?path=/sesame`)
    const all = api.logged.join('')
    assert.doesNotMatch(all, /sesame|tttttttt/)
    assert.match(all, new RegExp(`"path":"/v1/sandboxes/${id}/files"`))
  })

  it('serves 200 requests at once', async () => {
    const { id } = await api.control.create({})
    const answers = await Promise.all(
      Array.from({ length: 200 }, async (_, index) => {
        const response = await api.call('POST', `/v1/sandboxes/${id}/exec`, { command: `echo ${index}` })
        return ((await response.json()) as { stdout: string }).stdout
      }),
    )
    assert.deepEqual(
      answers,
      Array.from({ length: 200 }, (_, index) => String(index)),
    )
  })

  it('hands an Idempotency-Key on, and refuses one that is not sane', async () => {
    const create = (key: string) =>
      api.call('POST', '/v1/sandboxes', {}, { headers: { 'Idempotency-Key': key } })
    assert.equal((await create('key-1')).status, 201)
    assert.equal(api.control.keys.at(-1), 'key-1')
    for (const key of ['x'.repeat(256), 'a b'])
      assert.equal((await errorOf(await create(key))).code, 'invalid_header')
  })
})

describe('a draining API', () => {
  it('turns new requests away and lets running ones end', async () => {
    await using api = await startTestApi()
    const { id } = await api.control.create({})
    const gate = Promise.withResolvers<void>()
    const exec = api.processes.exec.bind(api.processes)
    const started = Promise.withResolvers<void>()
    api.processes.exec = async (...args) => {
      started.resolve()
      await gate.promise
      return exec(...args)
    }
    const running = api.call('POST', `/v1/sandboxes/${id}/exec`, { command: 'echo late' })
    await started.promise
    api.drain()
    const refused = await api.call('GET', '/v1/sandboxes')
    assert.equal(refused.status, 503)
    assert.equal(refused.headers.get('connection'), 'close')
    assert.equal((await errorOf(refused)).code, 'draining')
    gate.resolve()
    assert.equal(((await (await running).json()) as { stdout: string }).stdout, 'late')
  })

  it('closes as soon as the last running request has ended', async () => {
    const api = await startTestApi()
    const { id } = await api.control.create({})
    const gate = Promise.withResolvers<void>()
    const exec = api.processes.exec.bind(api.processes)
    let running = 0
    api.processes.exec = async (...args) => {
      running++
      await gate.promise
      return exec(...args)
    }
    const last = api.call('POST', `/v1/sandboxes/${id}/exec`, { command: 'echo last' })
    await until(() => running === 1)
    const closed = api.served.close({ timeoutMs: 3_600_000 })
    gate.resolve()
    assert.equal((await last).status, 200)
    await closed
  })

  it('says so when its port is taken', async () => {
    await using api = await startTestApi()
    await assert.rejects(startTestApi({ port: api.port }), {
      code: 'conflict',
      message: /listens on 127\.0\.0\.1/,
    })
  })

  it('closes while a request runs: within the time it ends, after it it is cut', async () => {
    const api = await startTestApi()
    const { id } = await api.control.create({})
    const running = api.call('POST', `/v1/sandboxes/${id}/exec`, { command: 'hang' })
    const failed = assert.rejects(running)
    await until(() => api.processes.execs.length === 1)
    await Promise.all([api.served.close({ timeoutMs: 20 }), api.served.close()])
    await failed
    await until(() => api.processes.aborted === 1)
  })
})
