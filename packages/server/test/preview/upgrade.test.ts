import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import type { Server } from 'node:http'
import { connect } from 'node:net'
import { after, before, describe, it } from 'node:test'
import { WebSocket, WebSocketServer } from 'ws'
import { freePort, get, type Lab, openLab, raw } from '../support/preview.ts'
import { until } from '../support/server.ts'

const ASK = 'GET /tunnel HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: own/1\r\n'

describe('another protocol through a preview', () => {
  let lab: Lab
  before(async () => {
    lab = await openLab()
  })
  after(() => lab[Symbol.asyncDispose]())

  it('carries WebSockets: text, bytes and the reason of the end, with the protocol that was agreed', async () => {
    const { url, app } = await lab.show((_incoming, outgoing) => void outgoing.end())
    const server = new WebSocketServer({ server: app as Server, handleProtocols: () => 'two' })
    server.on('connection', (socket, incoming) => {
      socket.send(`${incoming.url} ${incoming.headers['x-forwarded-for']}`)
      socket.on('message', (data, isBinary) => socket.send(data, { binary: isBinary }))
      socket.on('close', (code, reason) => seen.push([code, String(reason)]))
    })
    const seen: unknown[] = []
    const socket = new WebSocket(`${url.replace('http', 'ws')}/path?q=1`, ['one', 'two'])
    assert.equal(String((await once(socket, 'message'))[0]), '/path?q=1 127.0.0.1')
    assert.equal(socket.protocol, 'two')
    const bytes = randomBytes(3_000_000)
    socket.send(bytes)
    assert.ok(bytes.equals((await once(socket, 'message'))[0]))
    socket.close(4321, 'enough')
    await until(() => seen.length === 1)
    assert.deepEqual(seen, [[4321, 'enough']])
  })

  it('passes bytes that come right behind the heads, and ends each direction by itself', async () => {
    const { url } = await lab.showTcp((socket) => {
      let got = ''
      socket.on('data', (chunk) => {
        if (got === '') socket.write('HTTP/1.1 101 Go\r\nConnection: Upgrade\r\nUpgrade: own/1\r\n\r\nfirst;')
        got += chunk.toString()
      })
      socket.on('end', () => socket.end(`you ended with ${got.split('\r\n\r\n')[1]}`))
    })
    const socket = connect(Number(new URL(url).port), '127.0.0.1')
    socket.end(`${ASK}\r\nearly;late`)
    let answer = ''
    for await (const chunk of socket) answer += chunk
    assert.match(answer, /^HTTP\/1.1 101 Go\r\n/)
    assert.match(answer, /\r\n\r\nfirst;you ended with early;late$/)
  })

  it('wakes the sandbox and says so, be the answer another protocol or an ordinary one', async () => {
    const { url, app } = await lab.show((_incoming, outgoing) => void outgoing.end('no'))
    app.on('upgrade', (incoming, socket) => {
      if (incoming.url === '/refuse') socket.end('HTTP/1.1 426 No\r\nContent-Length: 0\r\n\r\n')
      else socket.end('HTTP/1.1 101 Go\r\nConnection: Upgrade\r\nUpgrade: own/1\r\n\r\n')
    })
    for (const path of ['/tunnel', '/refuse']) {
      assert.ok((await lab.api.call('POST', `/v1/sandboxes/${lab.sandboxId}/hibernate`)).ok)
      const asked = `${ASK.replace('/tunnel', path)}\r\n`
      assert.match(
        await raw(url, asked),
        /^HTTP\/1.1 (101 Go|426 No)\r\n(.+\r\n)*Islet-Auto-Resumed: true\r\n/,
      )
      assert.doesNotMatch(await raw(url, asked), /Islet-Auto-Resumed/)
    }
  })

  it('passes an ordinary answer on and ends the connection, so that nothing rides behind it', async () => {
    let requests = 0
    const { url } = await lab.show((_incoming, outgoing) => {
      requests++
      outgoing.writeHead(426, { 'X-Why': 'no' }).end('not here')
    })
    const answer = await raw(url, `${ASK}\r\nGET /second HTTP/1.1\r\nHost: localhost\r\n\r\n`)
    assert.match(answer, /^HTTP\/1.1 426 Upgrade Required\r\nX-Why: no\r\n/)
    assert.match(answer, /Connection: close\r\n/)
    assert.equal(answer.split('HTTP/1.1 426').length, 2)
    assert.equal(requests, 1)
  })

  it('serves an offer of HTTP/2 as HTTP/1.1, and refuses a body', async () => {
    const { url } = await lab.show(
      (incoming, outgoing) => void outgoing.end(JSON.stringify(incoming.headers)),
    )
    const answer = await get(url, {
      headers: { Connection: 'Upgrade, HTTP2-Settings', Upgrade: 'h2c', 'HTTP2-Settings': 'AAMAAABk' },
    })
    assert.equal(answer.status, 200)
    assert.ok(!/upgrade|http2/.test(answer.text), answer.text)
    assert.match(await raw(url, `${ASK}Content-Length: 3\r\n\r\nabc`), /^HTTP\/1.1 400 /)
  })

  it('ends with whichever side leaves, and is refused where nothing listens', async () => {
    const left: string[] = []
    const { url, port, app } = await lab.show((_incoming, outgoing) => void outgoing.end())
    const server = new WebSocketServer({ server: app as Server })
    server.on('connection', (socket, { url = '' }) => {
      socket.on('close', () => left.push(url))
      if (url === '/you') socket.terminate()
    })
    const address = url.replace('http', 'ws')
    const first = new WebSocket(`${address}/me`)
    await once(first, 'open')
    first.terminate()
    await until(() => left.includes('/me'))
    const second = new WebSocket(`${address}/you`)
    await once(second, 'close')
    const third = new WebSocket(`${address}/stays`)
    await once(third, 'open')
    assert.equal(
      (await lab.api.call('DELETE', `/v1/sandboxes/${lab.sandboxId}/previews/${port}`)).status,
      204,
    )
    await once(third, 'close')
    const nothing = await lab.preview({ port: await freePort() })
    // The visitor does not end its side: the preview can be deleted nevertheless.
    const lingering = connect({
      port: Number(new URL(nothing.url).port),
      host: '127.0.0.1',
      allowHalfOpen: true,
    })
    lingering.write(`${ASK}\r\n`)
    lingering.on('error', () => {})
    assert.match(String((await once(lingering, 'data'))[0]), /^HTTP\/1.1 502 [\s\S]*port_not_listening/)
    await lab.api.call('DELETE', `/v1/sandboxes/${lab.sandboxId}/previews/${nothing.port}`)
    lingering.destroy()
  })
})
