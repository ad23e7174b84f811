// Which route a request reaches, written as it comes off the wire: clients such as fetch tidy an address up before they send it.
import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { after, before, describe, it } from 'node:test'
import { ROUTES, type Route } from '@islet/contract'
import { startTestApi, TEST_KEY, type TestApi } from '../support/server.ts'

const ORIGIN = 'https://app.example.com'

interface Raw {
  status: number
  headers: Headers
  body: string
  code: string | undefined
}

describe('the router', () => {
  let api: TestApi
  let id: string
  before(async () => {
    api = await startTestApi({ corsOrigins: ORIGIN })
    id = (await api.createSandbox({ name: 'box' })).id
  })
  after(() => api[Symbol.asyncDispose]())

  /** Sends exactly this head; the key and Host are added unless `bare`. */
  async function raw(line: string, headers: string[] = [], { bare = false } = {}): Promise<Raw> {
    const socket = connect(api.port, '127.0.0.1')
    const usual = bare ? [] : [`Host: 127.0.0.1:${api.port}`, `Authorization: Bearer ${TEST_KEY}`]
    const version = line.endsWith('HTTP/1.0') ? '' : ' HTTP/1.1'
    socket.write([`${line}${version}`, ...usual, ...headers, 'Connection: close', '', ''].join('\r\n'))
    const [head = '', ...rest] = (await text(socket)).split('\r\n\r\n')
    const [statusLine = '', ...lines] = head.split('\r\n')
    const body = rest.join('\r\n\r\n')
    return {
      status: Number(statusLine.split(' ')[1]),
      headers: new Headers(lines.map((one) => one.split(/: (.*)/s).slice(0, 2) as [string, string])),
      body,
      code: /"code":"(\w+)"/.exec(body)?.[1],
    }
  }

  /** Each line is a request, then its status and, if it is an error, the code. `ID` stands for a sandbox. */
  async function check(table: readonly (readonly [string, number, string?])[]): Promise<void> {
    const found: unknown[] = []
    for (const [line] of table) {
      const { status, code } = await raw(line.replaceAll('ID', id))
      found.push(code === undefined ? [line, status] : [line, status, code])
    }
    assert.deepEqual(found, table)
  }

  it('takes a path as it is written, with no slash too many or too few', () =>
    check([
      ['GET /v1/sandboxes', 200],
      ['GET /v1/sandboxes?limit=1', 200],
      ['GET /v1/sandboxes#part', 200],
      ['GET /v1/sandboxes/', 404, 'route_not_found'],
      ['GET //v1/sandboxes', 404, 'route_not_found'],
      ['GET /v1//sandboxes', 404, 'route_not_found'],
      ['GET /v1/sandboxes//exec', 404, 'route_not_found'],
      ['GET /V1/sandboxes', 404, 'route_not_found'],
      ['GET /v1', 404, 'route_not_found'],
      ['GET /docs/', 404, 'route_not_found'],
      ['GET /docs', 200],
      ['GET /?x', 200],
    ]))

  it('decodes parameters once, and only after it has split the path', async () => {
    await check([
      ['GET /v1/sandboxes/box', 200],
      ['GET /v1/sandboxes/b%6Fx', 200],
      ['GET /v1/s%61ndboxes/box', 200],
      ['GET /v1/sandboxes/b%256Fx', 404, 'sandbox_not_found'],
      ['GET /v1/sandboxes/a%2Fb', 404, 'sandbox_not_found'],
      ['GET /v1/sandboxes/%00', 404, 'sandbox_not_found'],
      ['GET /v1%2Fsandboxes', 404, 'route_not_found'],
      ['GET /v1/sandboxes%3Flimit=1', 404, 'route_not_found'],
    ])
    for (const key of ['a/b', 'a b', 'ä?#', '100%', '%41', '\'"<>{}|^`', 'a+b', 'key', 'batch']) {
      const path = `/v1/sandboxes/${id}/store/${encodeURIComponent(key)}`
      assert.equal((await api.call('PUT', path, { value: key })).status, 200, key)
      assert.equal(JSON.parse((await raw(`GET ${path}`)).body).value, key)
    }
    const { keys } = (await (await api.call('GET', `/v1/sandboxes/${id}/store`)).json()) as {
      keys: unknown[]
    }
    assert.equal(keys.length, 9)
  })

  it('refuses a route whose path is not valid percent-encoded UTF-8, and no other', () =>
    check([
      ['GET /v1/sandboxes/%zz', 400, 'bad_request'],
      ['GET /v1/sandboxes/%', 400, 'bad_request'],
      ['GET /v1/sandboxes/%ff', 400, 'bad_request'],
      ['GET /v1/sandboxes/%c3', 400, 'bad_request'],
      ['GET /v1/sandboxes/ID/store/%e4%f6', 400, 'bad_request'],
      ['PUT /v1/sandboxes/%zz', 405, 'method_not_allowed'],
      ['GET /v1/nothing/%zz', 404, 'route_not_found'],
    ]))

  it('resolves dots as clients do', () =>
    check([
      ['GET /v1/./sandboxes', 200],
      ['GET /v1/x/../sandboxes', 200],
      ['GET /v1/x/%2e%2E/sandboxes', 200],
      ['GET /v1/x/..', 404, 'route_not_found'],
      ['GET /../v1/sandboxes', 200],
      ['GET /v1/sandboxes?x=/../y', 400, 'bad_request'],
      ['GET /v1/x/..\\sandboxes', 400, 'bad_request'],
    ]))

  it('answers with the methods that a path has', async () => {
    const paths = new Set(Object.values<Route>(ROUTES).map(({ path }) => path))
    for (const path of paths) {
      const methods = Object.values<Route>(ROUTES)
        .filter((route) => matches(route.path, path))
        .map(({ method }): string => method)
      const allow = [...new Set(methods.includes('GET') ? [...methods, 'HEAD'] : methods)].sort()
      const answer = await raw(`OPTIONS ${path.replace(/\{\w+\}/g, 'x')}`)
      assert.deepEqual([answer.status, answer.headers.get('allow')], [405, allow.join(', ')], path)
      const { error } = JSON.parse(answer.body)
      assert.equal(error.message, `This route takes ${allow.join(', ')}.`)
      assert.deepEqual(error.details, { allow })
    }
  })

  it('tells an address that does not exist from one that takes another method', () =>
    check([
      ['PUT /v1/sandboxes', 405, 'method_not_allowed'],
      ['DELETE /health', 405, 'method_not_allowed'],
      ['PATCH /v1/store/key', 405, 'method_not_allowed'],
      ['TRACE /v1/sandboxes', 405, 'method_not_allowed'],
      ['PUT /v1/nothing', 404, 'route_not_found'],
      ['POST /docs', 404, 'route_not_found'],
      ['OPTIONS *', 400, 'bad_request'],
      ['GET v1/sandboxes', 400, 'bad_request'],
    ]))

  it('prefers nothing by its place: one address may be a word for one method and a parameter for another', () =>
    check([
      ['GET /v1/sandboxes/ID/store/batch', 200],
      ['POST /v1/sandboxes/ID/store/batch', 400, 'bad_request'],
      ['DELETE /v1/images/pull', 404, 'runtime_not_found'],
      ['POST /v1/images/pull', 400, 'bad_request'],
      ['GET /v1/snapshots/import', 404, 'snapshot_not_found'],
    ]))

  it('answers HEAD as it would answer GET, without the body', async () => {
    for (const path of ['/health', '/docs', '/openapi.json', '/', '/v1/sandboxes', '/v1/sandboxes/box']) {
      const [got, head] = [await raw(`GET ${path}`), await raw(`HEAD ${path}`)]
      assert.deepEqual([head.status, head.body], [got.status, ''], path)
      assert.equal(head.headers.get('content-length'), got.headers.get('content-length'), path)
    }
    const only = await raw(`HEAD /v1/sandboxes/${id}/exec`)
    assert.deepEqual([only.status, only.headers.get('allow'), only.body], [405, 'POST', ''])
    assert.equal((await raw('HEAD /v1/nothing')).status, 404)
  })

  it('answers the question of a page before anything else, whatever the address', async () => {
    const asks = [`Origin: ${ORIGIN}`, 'Access-Control-Request-Method: PUT']
    const host = `Host: 127.0.0.1:${api.port}`
    for (const path of ['/v1/sandboxes', '/v1/nothing', '*', '/v1/sandboxes/%zz']) {
      const { status, headers } = await raw(`OPTIONS ${path}`, [host, ...asks], { bare: true })
      assert.deepEqual([status, headers.get('access-control-allow-origin')], [204, ORIGIN], path)
    }
    const other = await raw('OPTIONS /v1/sandboxes', [host, 'Origin: https://other.example'], { bare: true })
    assert.deepEqual([other.status, other.code], [401, 'unauthorized'])
    const plain = await raw('OPTIONS /v1/sandboxes', [`Origin: ${ORIGIN}`])
    assert.deepEqual([plain.status, plain.headers.get('access-control-allow-origin')], [405, ORIGIN])
  })

  it('refuses a Host that is none, before it asks for the key', async () => {
    const hosts = [undefined, '', 'a b', 'a@localhost', 'localhost:', 'localhost:x', 'a/b', 'a%41', '[::1']
    for (const host of hosts) {
      const { status, code } = await raw('GET /health', host === undefined ? [] : [`Host: ${host}`], {
        bare: true,
      })
      assert.deepEqual([status, code], [400, 'bad_request'], host)
    }
    for (const host of ['localhost', 'LOCALHOST:1', '[::1]:80', '127.0.0.1', 'a_b.localhost'])
      assert.equal((await raw('GET /health', [`Host: ${host}`], { bare: true })).status, 200, host)
    assert.equal((await raw('GET /health HTTP/1.0', [], { bare: true })).status, 400)
    assert.equal((await raw('GET /health HTTP/1.0', ['Host: localhost'], { bare: true })).status, 200)
    assert.equal((await raw('GET /health', ['Host: elsewhere'], { bare: true })).status, 403)
    const absolute = `http://127.0.0.1:${api.port}`
    assert.equal((await raw(`GET ${absolute}/v1/sandboxes?limit=1`)).status, 200)
    assert.equal((await raw(`GET ${absolute}`)).status, 200)
    assert.equal((await raw('GET http://elsewhere/v1/sandboxes')).status, 400)
  })

  it('finds the route of a WebSocket by the same rules', async () => {
    const asks = [
      'Upgrade: websocket',
      'Connection: Upgrade',
      'Sec-WebSocket-Version: 13',
      `Sec-WebSocket-Key: ${Buffer.alloc(16).toString('base64')}`,
    ]
    const found: unknown[] = []
    const table = [
      ['/v1/sandboxes/box/signals', 101],
      ['/v1/sandboxes/ID/signals?x=1', 400, 'bad_request'],
      ['/v1/sandboxes/ID/signals/', 404, 'route_not_found'],
      ['/v1/sandboxes/ID/processes/x/attach', 404, 'process_not_found'],
      ['/v1/sandboxes/x/signals', 404, 'sandbox_not_found'],
      ['/v1/sandboxes', 400, 'bad_request'],
      ['/v1/run', 400, 'bad_request'],
      ['/v1/nothing', 404, 'route_not_found'],
    ]
    for (const [path] of table) {
      const { status, code } = await upgrade(String(path).replaceAll('ID', id))
      found.push(code === undefined ? [path, status] : [path, status, code])
    }
    assert.deepEqual(found, table)
    await check([['GET /v1/sandboxes/ID/signals', 400, 'bad_request']])

    /** Reads no further than the head of a handshake. */
    function upgrade(path: string): Promise<{ status: number; code: string | undefined }> {
      return new Promise((resolve, reject) => {
        const socket = connect(api.port, '127.0.0.1')
        const usual = [`Host: 127.0.0.1:${api.port}`, `Authorization: Bearer ${TEST_KEY}`]
        socket.write([`GET ${path} HTTP/1.1`, ...usual, ...asks, '', ''].join('\r\n'))
        socket.once('error', reject).once('data', (data) => {
          socket.destroy()
          const answer = String(data)
          resolve({ status: Number(answer.split(' ')[1]), code: /"code":"(\w+)"/.exec(answer)?.[1] })
        })
      })
    }
  })
})

/** Whether a path of the table, with its parameters filled in by `x`, is also one of `other`. */
function matches(pattern: string, other: string): boolean {
  return new RegExp(`^${pattern.replace(/\{\w+\}/g, '[^/]+')}$`).test(other.replace(/\{\w+\}/g, 'x'))
}
