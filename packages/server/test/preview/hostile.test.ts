import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { after, before, describe, it } from 'node:test'
import { get, type Lab, openLab, raw } from '../support/preview.ts'
import { until } from '../support/server.ts'

const HEAD = 'Host: localhost\r\nConnection: close\r\n'

describe('a preview among strangers', () => {
  let lab: Lab
  before(async () => {
    lab = await openLab()
  })
  after(() => lab[Symbol.asyncDispose]())

  it('passes no request on that two readers could read as two', async () => {
    let requests = 0
    const { url } = await lab.show((_incoming, outgoing) => {
      requests++
      outgoing.end('reached')
    })
    const smuggled = 'GET /smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n'
    for (const text of [
      `POST / HTTP/1.1\r\n${HEAD}Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${smuggled}`,
      `POST / HTTP/1.1\r\n${HEAD}Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n${smuggled}`,
      `POST / HTTP/1.1\r\n${HEAD}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n${smuggled}`,
      `POST / HTTP/1.1\r\n${HEAD}Transfer-Encoding: xchunked\r\n\r\n${smuggled}`,
      `POST / HTTP/1.1\r\n${HEAD}Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n${smuggled}`,
      `POST / HTTP/1.1\r\n${HEAD}Content-Length: 5\r\nContent-Length: 6\r\n\r\n${smuggled}`,
      `POST / HTTP/1.1\r\n${HEAD}Content-Length: +5\r\n\r\n${smuggled}`,
      `GET / HTTP/1.1\r\n${HEAD}Host: other\r\n\r\n`,
      'GET / HTTP/1.1\r\nConnection: close\r\n\r\n',
      `GET / HTTP/1.1\r\n${HEAD}Authorization: Bearer a\r\nAuthorization: Bearer b\r\n\r\n`,
      `GET http://elsewhere/ HTTP/1.1\r\n${HEAD}\r\n`,
      `GET / HTTP/1.1\r\n${HEAD}X-A: b\rX-B: c\r\n\r\n`,
      `GET / HTTP/1.1\r\n${HEAD}X-A\0: b\r\n\r\n`,
      `GET / HTTP/1.1\r\n${HEAD} folded: b\r\n\r\n`,
      `GET /\tx HTTP/1.1\r\n${HEAD}\r\n`,
      `GET / HTTP/1.1\r\n${HEAD}X-Long: ${'x'.repeat(70_000)}\r\n\r\n`,
    ]) {
      const answer = await raw(url, text)
      assert.match(answer, /^HTTP\/1.1 4\d\d /, JSON.stringify(text.slice(0, 120)))
    }
    assert.equal(requests, 0)
    const absolute = await raw(url, `GET http://localhost?q HTTP/1.1\r\n${HEAD}\r\n`)
    assert.match(absolute, /^HTTP\/1.1 200 [\s\S]*reached/)
  })

  it('keeps the length of a body whatever Connection says of it', async () => {
    const { url } = await lab.show((incoming, outgoing) => void incoming.pipe(outgoing))
    const answer = await raw(
      url,
      'POST / HTTP/1.1\r\nHost: localhost\r\nConnection: close, Content-Length\r\nContent-Length: 4\r\n\r\nbody',
    )
    assert.match(answer, /\r\n\r\n4\r\nbody\r\n0\r\n\r\n$/)
  })

  it('says that the program does not speak HTTP, whatever it says instead', async () => {
    const answers = [
      'SSH-2.0-OpenSSH_9.2\r\n',
      '\0'.repeat(1000),
      'HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n',
      'HTTP/1.1 200 OK\r\nX: a\0b\r\n\r\n',
      'HTTP/1.1 99 Low\r\n\r\n',
      'HTTP/1.1 200 O\x01K\r\nContent-Length: 0\r\n\r\n',
      'HTTP/1.1 101 Now\r\nConnection: Upgrade\r\nUpgrade: own\r\n\r\n',
      `HTTP/1.1 200 OK\r\nX: ${'x'.repeat(70_000)}\r\n\r\n`,
      '',
    ]
    let next = ''
    const { url } = await lab.showTcp((socket) => {
      socket.once('data', () => socket.end(next, 'latin1'))
    })
    for (next of answers) {
      const { status, text } = await get(url)
      assert.equal(status, 502, `${JSON.stringify(next.slice(0, 80))}: ${text}`)
      assert.equal(JSON.parse(text).error.code, 'preview_failed')
    }
  })

  it('gives a program no say over the visitor but through its answer', async () => {
    const { url } = await lab.showTcp((socket) => {
      socket.once('data', () =>
        socket.end(
          'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nmore',
        ),
      )
    })
    const answer = await raw(url, `GET / HTTP/1.1\r\n${HEAD}\r\n`)
    assert.equal(answer.split('HTTP/1.1').length, 2)
    assert.match(answer, /\r\n\r\nok$/)
  })

  it('bounds the visitors of one sandbox and lets the next in when one has left', async () => {
    const { url } = await lab.show((incoming, outgoing) => {
      if (incoming.url === '/hold') outgoing.write('x')
      else outgoing.end('free')
    })
    const other = await lab.show((_incoming, outgoing) => void outgoing.end('free'))
    const port = Number(new URL(url).port)
    const sockets = Array.from({ length: 512 }, () => connect(port, '127.0.0.1'))
    await Promise.all(
      sockets.map(async (socket) => {
        socket.write('GET /hold HTTP/1.1\r\nHost: localhost\r\n\r\n')
        await once(socket, 'data')
      }),
    )
    // The preview's own port takes no more connections, another preview of the same sandbox no more requests.
    await assert.rejects(get(url), { code: 'ECONNRESET' })
    const refused = await get(other.url)
    assert.equal(refused.status, 503)
    assert.equal(JSON.parse(refused.text).error.code, 'too_many_requests')
    assert.equal((await lab.api.call('GET', `/v1/sandboxes/${lab.sandboxId}`)).status, 200)
    for (const socket of sockets) socket.destroy()
    let status = 0
    while (status !== 200) status = (await get(other.url)).status
  })

  it('forgets the requests of a visitor who sent many behind each other and left', async () => {
    let reached = 0
    const { url } = await lab.show((incoming, outgoing) => {
      if (incoming.url === '/free') return void outgoing.end('free')
      reached++
      outgoing.write('x')
    })
    const sockets = Array.from({ length: 30 }, () => connect(Number(new URL(url).port), '127.0.0.1'))
    for (const socket of sockets)
      socket.resume().write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n'.repeat(20))
    await until(() => reached >= 512)
    for (const socket of sockets) socket.destroy()
    let status = 0
    while (status !== 200) status = (await get(`${url}/free`)).status
  })

  it('answers only to names of this machine, since it listens on loopback', async () => {
    const { url } = await lab.show((_incoming, outgoing) => void outgoing.end('secret'))
    const rebound = await get(url, { headers: { Host: 'evil.example' } })
    assert.equal(rebound.status, 403)
    for (const Host of ['localhost', '127.0.0.1:1', '[::1]', 'app.localhost:80'])
      assert.equal((await get(url, { headers: { Host } })).status, 200)
  })
})
