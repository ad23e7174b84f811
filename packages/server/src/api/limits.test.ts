import assert from 'node:assert/strict'
import { connect, type Socket } from 'node:net'
import { after, before, describe, it } from 'node:test'
import { type ErrorBody, LIMITS } from '@islet/contract'
import { startTestApi, TEST_KEY, type TestApi } from './testing.ts'

const closeOf = (socket: Socket) => new Promise<void>((resolve) => socket.once('close', () => resolve()))
const GIGABYTE = 1024 * 1024 * 1024

describe('what is too much', () => {
  let api: TestApi
  before(async () => {
    api = await startTestApi({ headersTimeoutMs: 300 })
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
    const filler = LIMITS.jsonBodyBytes - '{"name":"x"}'.length
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

  it('a head that never ends is cut off, however slowly it comes', async () => {
    const socket = connect(api.port, '127.0.0.1')
    socket.on('error', () => {})
    const received: Buffer[] = []
    socket.on('data', (data) => received.push(data))
    socket.write('GET /health HTTP/1.1\r\nHost: localhost\r\n')
    const drip = setInterval(() => socket.write('X: 1\r\n'), 20)
    await closeOf(socket)
    clearInterval(drip)
    assert.match(Buffer.concat(received).toString(), /^HTTP\/1.1 408 .*request_timeout/s)
  })

  it('a connection that says nothing is closed', async () => {
    const answer = await raw('')
    assert.ok(answer.status === 408 || Number.isNaN(answer.status))
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
    assert.doesNotMatch(JSON.stringify([...api.control.sandboxes.values()]), /smuggled/)
  })

  it('an answer that takes longer than a head may is still given', async () => {
    const { id } = await api.control.create({})
    const exec = api.processes.exec.bind(api.processes)
    api.processes.exec = async (...args) => {
      await new Promise((resolve) => setTimeout(resolve, 700))
      return exec(...args)
    }
    assert.equal((await api.call('POST', `/v1/sandboxes/${id}/exec`, { command: 'echo late' })).status, 200)
    api.processes.exec = exec
  })

  it('a request for another protocol than WebSocket is served as it is', async () => {
    const answer = await raw(head('GET', '/health', 'Connection: Upgrade, close', 'Upgrade: h2c'))
    assert.equal(answer.status, 200)
  })
})
