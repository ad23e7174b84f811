import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { Agent, request } from 'node:http'
import { after, before, describe, it } from 'node:test'
import { freePort, get, type Lab, openLab, raw } from '../support/preview.ts'
import { until } from '../support/server.ts'

describe('the proxy of a preview', () => {
  let lab: Lab
  before(async () => {
    lab = await openLab()
  })
  after(() => lab[Symbol.asyncDispose]())

  it('passes a request and its answer, headers in order and as they were written', async () => {
    const { url, port } = await lab.show((incoming, outgoing) => {
      outgoing.writeHead(418, 'Short and stout', [
        'Set-Cookie',
        'a=1',
        'X-Odd-CASE',
        'é',
        'Set-Cookie',
        'b=2',
      ])
      outgoing.end(
        JSON.stringify({ method: incoming.method, url: incoming.url, headers: incoming.rawHeaders }),
      )
    })
    const answer = await get(`${url}/a%2Fb?x=1&&y`, {
      method: 'DELETE',
      headers: {
        'X-Own': 'v',
        Connection: 'X-Hop',
        'X-Hop': 'no',
        'X-Forwarded-For': '6.6.6.6',
        Forwarded: 'for=6',
      },
    })
    assert.equal(answer.status, 418)
    assert.equal(answer.message.statusMessage, 'Short and stout')
    assert.deepEqual(answer.message.headers['set-cookie'], ['a=1', 'b=2'])
    assert.equal(answer.message.headers['x-odd-case'], 'é')
    const seen = JSON.parse(answer.text)
    assert.equal(seen.method, 'DELETE')
    assert.equal(seen.url, '/a%2Fb?x=1&&y')
    const host = new URL(url).host
    assert.notEqual(host, `127.0.0.1:${port}`)
    assert.deepEqual(seen.headers, [
      ...['Host', host, 'X-Own', 'v', 'X-Forwarded-For', '127.0.0.1'],
      ...['X-Forwarded-Proto', 'http', 'X-Forwarded-Host', host, 'Connection', 'keep-alive'],
    ])
    assert.ok(!answer.message.rawHeaders.some((name) => /^(via|access-control)/i.test(name)))
  })

  it('streams 50 MB both ways, of a known length and chunked', async () => {
    const { url } = await lab.show((incoming, outgoing) => void incoming.pipe(outgoing))
    const data = randomBytes(50_000_000)
    const digest = createHash('sha256').update(data).digest('hex')
    for (const headers of [{ 'Content-Length': data.length }, { 'Transfer-Encoding': 'chunked' }]) {
      const { body } = await get(url, { method: 'POST', headers, body: data })
      assert.equal(createHash('sha256').update(body).digest('hex'), digest)
    }
  })

  it('passes a piece of an answer while the rest is still to come, and a piece of a body', async () => {
    const { url } = await lab.show((incoming, outgoing) => {
      outgoing.writeHead(200, { 'Content-Type': 'text/event-stream' })
      outgoing.flushHeaders()
      incoming.on('data', (piece) => outgoing.write(`data: ${piece}\n\n`))
      incoming.on('end', () => outgoing.end())
    })
    const sent = request(url, { method: 'POST', agent: false })
    sent.flushHeaders()
    const [answer] = await once(sent, 'response')
    for (const word of ['one', 'two']) {
      sent.write(word)
      const [piece] = await once(answer, 'data')
      assert.equal(String(piece), `data: ${word}\n\n`)
    }
    sent.end()
    await once(answer, 'end')
  })

  it('does not take more from a program than its visitor reads, nor from a visitor than the program reads', async () => {
    let written = 0
    const { url } = await lab.show((incoming, outgoing) => {
      if (incoming.method === 'POST') return // reads nothing
      const fill = (): void => {
        while (outgoing.write(Buffer.alloc(65_536))) written += 65_536
        outgoing.once('drain', fill)
      }
      fill()
    })
    const sent = request(url, { agent: false }).end()
    const [answer] = await once(sent, 'response')
    let last = -1
    await until(async () => {
      const was = last
      last = written
      await new Promise((resolve) => setTimeout(resolve, 100))
      return was === written
    })
    assert.ok(written < 64_000_000, `${written} bytes are held somewhere`)
    answer.destroy()

    const upload = request(url, { method: 'POST', agent: false })
    upload.on('error', () => {})
    let taken = 0
    const push = (): void => {
      while (taken < 1e9 && upload.write(Buffer.alloc(65_536))) taken += 65_536
      if (taken < 1e9) upload.once('drain', push)
    }
    push()
    last = -1
    await until(async () => {
      const was = last
      last = taken
      await new Promise((resolve) => setTimeout(resolve, 100))
      return was === taken
    })
    assert.ok(taken < 64_000_000, `${taken} bytes are held somewhere`)
    upload.destroy()
  })

  it('tells the program that its visitor has left, and the visitor that the program has', async () => {
    let left = 0
    const { url } = await lab.show((incoming, outgoing) => {
      if (incoming.url === '/cut') {
        outgoing.writeHead(200, { 'Content-Length': 100 })
        outgoing.write('half')
        setTimeout(() => outgoing.destroy(), 20)
        return
      }
      outgoing.write('x')
      outgoing.on('close', () => left++)
    })
    const sent = request(url, { agent: false }).end()
    const [answer] = await once(sent, 'response')
    answer.destroy()
    await until(() => left === 1)
    await assert.rejects(get(`${url}/cut`), { code: 'ECONNRESET' })
  })

  it('passes HEAD, answers without a body, 100-continue, early hints and trailers', async () => {
    const { url } = await lab.show((incoming, outgoing) => {
      switch (incoming.url) {
        case '/head':
          outgoing.setHeader('Content-Length', 12345).end()
          break
        case '/304':
          outgoing.writeHead(304, { ETag: '"x"' }).end()
          break
        case '/204':
          outgoing.writeHead(204).end()
          break
        case '/hints':
          outgoing.writeEarlyHints({ link: '</a.css>; rel=preload' })
          outgoing.end('ok')
          break
        default:
          incoming.resume().on('end', () => {
            outgoing.write('body')
            outgoing.addTrailers({ 'X-Got': incoming.trailers['x-sum'] ?? 'none', 'Set-Cookie': 'late=1' })
            outgoing.end()
          })
      }
    })
    const head = await get(`${url}/head`, { method: 'HEAD' })
    assert.deepEqual([head.status, head.message.headers['content-length'], head.text], [200, '12345', ''])
    const unchanged = await get(`${url}/304`)
    assert.deepEqual([unchanged.status, unchanged.message.headers.etag], [304, '"x"'])
    assert.equal((await get(`${url}/204`)).status, 204)

    const hinted = request(`${url}/hints`, { agent: false }).end()
    const [[information], [hintedAnswer]] = await Promise.all([
      once(hinted, 'information'),
      once(hinted, 'response'),
    ])
    assert.equal(information.headers.link, '</a.css>; rel=preload')
    hintedAnswer.resume()

    const sent = request(url, {
      method: 'POST',
      agent: false,
      headers: { Expect: '100-continue', 'Content-Length': 2 },
    })
    sent.flushHeaders()
    await once(sent, 'continue')
    sent.end('hi')
    const [answer] = await once(sent, 'response')
    answer.resume()
    await once(answer, 'end')
    assert.equal(answer.statusCode, 200)

    const text = await raw(
      url,
      'POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nX-Sum: 7\r\n\r\n',
    )
    assert.match(text, /\r\n0\r\nX-Got: 7\r\n\r\n$/)
  })

  it('answers at once when the program does before it has read the body', async () => {
    const { url } = await lab.show((_incoming, outgoing) => {
      outgoing.writeHead(413).end('too much')
    })
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    for (let i = 0; i < 2; i++) {
      const sent = request(url, { method: 'POST', agent })
      sent.on('error', () => {})
      sent.write(Buffer.alloc(3_000_000))
      const [answer] = await once(sent, 'response')
      assert.equal(answer.statusCode, 413)
      sent.end()
      answer.resume()
      await once(answer, 'end')
    }
    agent.destroy()
  })

  it('serves a program that knows no lengths, HTTP/1.0 both ways, and several requests on one connection', async () => {
    const { url } = await lab.showTcp((socket) => {
      socket.once('data', () => socket.end('HTTP/1.0 200 Fine\r\nX-A: b\r\n\r\nuntil the end'))
    })
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    for (let i = 0; i < 3; i++) {
      const answer = await get(url, { agent })
      assert.deepEqual(
        [answer.status, answer.message.headers['x-a'], answer.text],
        [200, 'b', 'until the end'],
      )
      assert.equal(answer.isReused, i > 0)
    }
    agent.destroy()
    assert.match(
      await raw(url, 'GET / HTTP/1.0\r\n\r\n'),
      /^HTTP\/1.1 200 Fine\r\n(.+\r\n)*\r\nuntil the end$/,
    )
  })

  it('wakes the sandbox and says so, whatever the program says', async () => {
    const { url } = await lab.show((_incoming, outgoing) => {
      outgoing.writeHead(200, { 'Islet-Auto-Resumed': 'perhaps' }).end('awake')
    })
    const told = async () => (await get(url)).message.headers['islet-auto-resumed']
    assert.equal(await told(), undefined)
    assert.ok((await lab.api.call('POST', `/v1/sandboxes/${lab.sandboxId}/hibernate`)).ok)
    assert.equal(await told(), 'true')
    assert.equal(await told(), undefined)
  })

  it('says that nothing listens: a page that tries again for browsers, an error for programs', async () => {
    const { url, port } = await lab.preview({ port: await freePort() })
    const page = await get(url, { headers: { Accept: 'text/html,*/*' } })
    assert.equal(page.status, 502)
    assert.match(page.message.headers['content-type']!, /^text\/html/)
    assert.match(page.text, new RegExp(`Nothing listens on port ${port}`))
    assert.match(page.text, /http-equiv="refresh"/)
    const error = await get(url, { method: 'POST', body: 'x' })
    assert.equal(error.status, 502)
    assert.equal(JSON.parse(error.text).error.code, 'port_not_listening')
  })
})
