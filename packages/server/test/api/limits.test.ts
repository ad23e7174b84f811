import assert from 'node:assert/strict'
import { connect, type Socket } from 'node:net'
import { after, before, describe, it, type TestContext } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import { type ErrorBody, LIMITS } from '@islet/contract'
import { createApi } from '../../src/api/api.ts'
import { serveApi } from '../../src/api/http/serve.ts'
import { Held } from '../../src/control/held.ts'
import { Connections } from '../../src/listen/connections.ts'
import { createLog } from '../../src/log.ts'
import { startTestApi, TEST_KEY, type TestApi } from '../support/server.ts'

const closeOf = (socket: Socket) => new Promise<void>((resolve) => socket.once('close', () => resolve()))
const GIGABYTE = 1024 * 1024 * 1024

describe('what is too much', () => {
  let api: TestApi
  before(async () => {
    api = await startTestApi()
  })
  after(() => api[Symbol.asyncDispose]())

  const head = (method: string, path: string, ...headers: string[]) =>
    `${[`${method} ${path} HTTP/1.1`, 'Host: localhost', `Authorization: Bearer ${TEST_KEY}`, ...headers].join('\r\n')}\r\n\r\n`

  /** Sends, then writes `more` for as long as the server takes it; answers with what came back until the end. */
  async function raw(text: string, more?: { chunk: Buffer; bytes: number }) {
    const socket = connect(api.port, '127.0.0.1')
    socket.on('error', () => {})
    const received: Buffer[] = []
    socket.on('data', (data) => received.push(data))
    const closed = closeOf(socket)
    socket.write(text)
    let sent = 0
    if (more) sent = await flood(socket, more)
    await closed
    const [headers = '', body = ''] = Buffer.concat(received).toString().split('\r\n\r\n')
    return { status: Number(headers.split(' ')[1]), headers, body, sent }
  }

  async function flood(socket: Socket, { chunk, bytes }: { chunk: Buffer; bytes: number }): Promise<number> {
    let sent = 0
    const closed = closeOf(socket)
    while (sent < bytes && socket.writable) {
      sent += chunk.length
      if (!socket.write(chunk))
        await Promise.race([new Promise((resolve) => socket.once('drain', resolve)), closed])
    }
    return sent
  }
  const codeOf = (body: string) => (JSON.parse(body) as ErrorBody).error.code

  it('a body of a gigabyte is answered at once and not read to its end', async () => {
    const before = process.memoryUsage.rss()
    const chunk = Buffer.alloc(1024 * 1024, ' ')
    const answer = await raw(
      head('POST', '/v1/sandboxes', 'Content-Type: application/json', `Content-Length: ${GIGABYTE}`),
      { chunk, bytes: GIGABYTE },
    )
    assert.equal(answer.status, 413)
    assert.match(answer.headers, /^connection: close$/im)
    assert.equal(codeOf(answer.body), 'body_too_large')
    assert.ok(answer.sent < GIGABYTE / 4, `${answer.sent} bytes were sent`)
    assert.ok(process.memoryUsage.rss() - before < GIGABYTE / 4)
  })

  it('nor is one that does not say how long it is', async () => {
    const size = 4 * 1024 * 1024
    const chunk = Buffer.concat([
      Buffer.from(`${size.toString(16)}\r\n`),
      Buffer.alloc(size, ' '),
      Buffer.from('\r\n'),
    ])
    const answer = await raw(
      head('POST', '/v1/sandboxes', 'Content-Type: application/json', 'Transfer-Encoding: chunked'),
      { chunk, bytes: GIGABYTE },
    )
    assert.equal(answer.status, 413)
    assert.equal(codeOf(answer.body), 'body_too_large')
    assert.ok(answer.sent < GIGABYTE / 4)
  })

  it('nor is a body that nobody has the key for', async () => {
    const text = head('PUT', '/v1/sandboxes/x/files?path=/x', `Content-Length: ${GIGABYTE}`).replace(
      TEST_KEY,
      'wrong',
    )
    const answer = await raw(text, { chunk: Buffer.alloc(1024 * 1024), bytes: GIGABYTE })
    assert.equal(answer.status, 401)
    assert.ok(answer.sent < GIGABYTE / 4)
  })

  it('a body of just the limit is read', async () => {
    const filler = LIMITS.contentBodyBytes - '{"name":"x"}'.length
    const body = `{"name":"x"${' '.repeat(filler)}}`
    const headers = { 'Content-Type': 'application/json' }
    assert.equal((await api.call('POST', '/v1/sandboxes', body, { headers })).status, 201)
    assert.equal((await api.call('POST', '/v1/sandboxes', `${body} `, { headers })).status, 413)
  })

  it('a small body that an error left unread does not cost the connection', async () => {
    const first = head('POST', '/v1/nope', 'Content-Type: application/json', 'Content-Length: 2')
    const answer = await raw(`${first}{}${head('GET', '/health', 'Connection: close')}`)
    assert.match(answer.headers, /404 Not Found/)
    assert.match(answer.body, /HTTP\/1.1 200 OK/)
  })

  it('headers without end are refused', async () => {
    const many = Array.from({ length: 2000 }, (_, index) => `X-Header-${index}: ${'x'.repeat(100)}`)
    const answer = await raw(head('GET', '/health', ...many))
    assert.equal(answer.status, 431)
    assert.equal(codeOf(answer.body), 'headers_too_large')
    const long = await raw(head('GET', `/health?${'x'.repeat(100_000)}`))
    assert.equal(long.status, 431)
  })

  it('what is not HTTP is answered in our words', async () => {
    const lines = ['NONSENSE\r\n\r\n', 'GET /health HTTP/1.1\r\nHost: localhost\r\nBad Header: x\r\n\r\n']
    lines.push(
      `GET /v1/\0 HTTP/1.1\r\nHost: localhost\r\n\r\n`,
      'GET /health HTTP/1.1\r\nHost: localhost\r\nX: a\0b\r\n\r\n',
    )
    lines.push(head('POST', '/v1/sandboxes', 'Content-Length: 1', 'Transfer-Encoding: chunked'))
    lines.push(
      head('POST', '/v1/sandboxes', 'Content-Length: -1'),
      head('POST', '/v1/sandboxes', 'Content-Length: 1', 'Content-Length: 2'),
    )
    for (const line of lines) {
      const answer = await raw(line)
      assert.equal(answer.status, 400, line)
      assert.equal(codeOf(answer.body), 'bad_request')
    }
  })

  it('bytes beyond a Content-Length are another request, and not a valid one', async () => {
    const text = `${head('POST', '/v1/sandboxes', 'Content-Type: application/json', 'Content-Length: 2')}{}{"name":"smuggled"}`
    const answer = await raw(text)
    assert.match(answer.headers, /^HTTP\/1.1 (201|400)/)
    assert.doesNotMatch(await (await api.call('GET', '/v1/sandboxes?status=all')).text(), /smuggled/)
  })

  it('a request for another protocol than WebSocket is served as it is', async () => {
    const answer = await raw(head('GET', '/health', 'Connection: Upgrade, close', 'Upgrade: h2c'))
    assert.equal(answer.status, 200)
  })
})

describe('a head that takes too long', () => {
  // The server's own patience is longer than a test's. No request here gets as far as a service.
  const serveImpatient = async (t: TestContext) => {
    const credentials = { holderOf: async () => ({ kind: 'admin' }), watch: () => () => {} }
    const config = { host: '127.0.0.1', corsOrigins: [] }
    const previews = { handlerOf: () => undefined }
    const sandboxes = { held: new Held({ eachBytes: 1, allBytes: 1 }) }
    const api = createApi({
      config,
      sandboxes,
      credentials,
      previews,
      log: createLog({ level: 'silent' }),
    } as never)
    const served = await serveApi(api, {
      ...config,
      port: 0,
      headTimeoutMs: 300,
      connections: new Connections({ max: 64 }),
    })
    t.after(() => served.close())
    return (text: string) => {
      const socket = connect(served.port, '127.0.0.1').on('error', () => {})
      t.after(() => socket.destroy())
      const received: Buffer[] = []
      socket.on('data', (data) => received.push(data))
      socket.write(text)
      return { socket, closed: closeOf(socket), said: () => Buffer.concat(received).toString() }
    }
  }

  it('is cut off, however slowly it comes, and so is a connection that says nothing', async (t) => {
    const send = await serveImpatient(t)
    const slow = send('GET /health HTTP/1.1\r\nHost: localhost\r\n')
    const silent = send('')
    while (!slow.socket.destroyed) {
      if (slow.socket.writable) slow.socket.write('X: 1\r\n')
      await setTimeout(20, undefined, { signal: t.signal })
    }
    await silent.closed
    assert.match(slow.said(), /^HTTP\/1.1 408 .*request_timeout/s)
  })

  it('is not the body: that may take longer', async (t) => {
    const send = await serveImpatient(t)
    const body = JSON.stringify({ nope: 'x'.repeat(40) })
    const head = [
      'POST /v1/sandboxes HTTP/1.1',
      'Host: localhost',
      `Authorization: Bearer ${TEST_KEY}`,
      'Content-Type: application/json',
      `Content-Length: ${body.length}`,
      'Expect: 100-continue',
      'Connection: close',
    ]
    const text = `${head.join('\r\n')}\r\n\r\n`
    let sent = send(text)
    while (!sent.said().startsWith('HTTP/1.1 100 ')) {
      // On a machine that stalls even a whole head may come too late.
      if (sent.socket.destroyed) sent = send(text)
      await setTimeout(10, undefined, { signal: t.signal })
    }
    for (const character of body) {
      sent.socket.write(character)
      await setTimeout(15)
    }
    await sent.closed
    assert.match(sent.said(), /\r\n\r\nHTTP\/1.1 400 .*nope: there is no such field/s)
  })
})
