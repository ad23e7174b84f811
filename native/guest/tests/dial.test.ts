import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { createServer, type Server, type Socket } from 'node:net'
import { after, before, describe, type TestContext, test } from 'node:test'
import { Guest, type GuestError, INITIAL_WINDOW, MAX_DATA, type Stream, until } from './harness.ts'

let guest: Guest
before(async () => {
  guest = await Guest.start()
})
after(() => guest.stop())

async function serve(
  t: TestContext,
  host: string,
  onSocket: (socket: Socket) => void,
): Promise<{ server: Server; port: number }> {
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    t.after(() => socket.destroy())
    onSocket(socket)
  })
  t.after(() => server.close())
  await new Promise<void>((done) => server.listen(0, host, done))
  return { server, port: (server.address() as { port: number }).port }
}

async function dial(port: number, host?: string): Promise<Stream> {
  const stream = guest.request('DIAL', { port, host })
  await stream.next('OPENED')
  return stream
}

/** All bytes until END, with the window raised on the way. */
async function drain(stream: Stream): Promise<Buffer> {
  const chunks: Buffer[] = []
  let received = 0
  for (;;) {
    const message = await stream.next('DATA', 'END', 'WINDOW')
    if (message.name === 'END') return Buffer.concat(chunks)
    if (message.name === 'WINDOW') continue
    chunks.push(message.raw)
    received += message.raw.length
    stream.send('WINDOW', { limit: received + INITIAL_WINDOW })
  }
}

describe('dial', () => {
  for (const host of ['127.0.0.1', '::1']) {
    test(`reaches a server on ${host}, asked for by name or not`, async (t) => {
      const { port } = await serve(t, host, (socket) => socket.end(`hello from ${host}`))
      for (const asked of [host, undefined]) {
        const stream = await dial(port, asked)
        assert.equal((await drain(stream)).toString(), `hello from ${host}`)
        stream.send('END')
      }
      const other = host === '::1' ? '127.0.0.1' : '::1'
      await assert.rejects(
        dial(port, other),
        (error: GuestError) => error.kind === 'REFUSED' && error.stage === 'connect',
      )
    })
  }

  test('a port where nothing listens is REFUSED', async (t) => {
    const { server, port } = await serve(t, '127.0.0.1', () => {})
    await new Promise((done) => server.close(done))
    await assert.rejects(dial(port), (error: GuestError) => error.kind === 'REFUSED')
  })

  test('END from the server half-closes the connection', async (t) => {
    const { port } = await serve(t, '127.0.0.1', (socket) => {
      let got = ''
      socket.on('data', (bytes) => {
        got += bytes
      })
      socket.on('end', () => socket.end(`you said ${got}`))
    })
    const stream = await dial(port)
    stream.raw('DATA', Buffer.from('all I have'))
    stream.send('END')
    assert.equal((await drain(stream)).toString(), 'you said all I have')
  })

  test('the end of the program half-closes the stream', async (t) => {
    const received = Promise.withResolvers<string>()
    const { port } = await serve(t, '127.0.0.1', (socket) => {
      let got = ''
      socket.end('bye')
      socket.on('data', (bytes) => {
        got += bytes
      })
      socket.on('end', () => received.resolve(got))
    })
    const stream = await dial(port)
    assert.equal((await drain(stream)).toString(), 'bye')
    stream.raw('DATA', Buffer.from('after '))
    await guest.ping()
    stream.raw('DATA', Buffer.from('your end'))
    stream.send('END')
    assert.equal(await received.promise, 'after your end')
  })

  test('megabytes go both ways at once', async (t) => {
    const content = randomBytes(8_000_000)
    const { port } = await serve(t, '127.0.0.1', (socket) => socket.pipe(socket))
    const stream = await dial(port)
    let limit = INITIAL_WINDOW
    let sent = 0
    let received = 0
    const hash = createHash('sha256')
    for (;;) {
      while (sent < content.length && sent < limit) {
        const end = Math.min(content.length, sent + MAX_DATA, limit)
        stream.raw('DATA', content.subarray(sent, end))
        sent = end
        if (sent === content.length) stream.send('END')
      }
      const message = await stream.next('DATA', 'WINDOW', 'END')
      if (message.name === 'END') break
      if (message.name === 'WINDOW') limit = message.fields.limit
      else {
        hash.update(message.raw)
        received += message.raw.length
        stream.send('WINDOW', { limit: received + INITIAL_WINDOW })
      }
    }
    assert.equal(hash.digest('hex'), createHash('sha256').update(content).digest('hex'))
  })

  test('a reader that stalls stops the server at the window', async (t) => {
    let written = 0
    const { port } = await serve(t, '127.0.0.1', (socket) => {
      const more = () => {
        while (!socket.destroyed && socket.write(Buffer.alloc(65536))) written += 65536
      }
      socket.on('drain', more)
      socket.on('error', () => {})
      more()
    })
    const stream = await dial(port)
    let received = 0
    while (received < INITIAL_WINDOW) received += (await stream.next('DATA')).raw.length
    await guest.ping()
    assert.equal(received, INITIAL_WINDOW)
    assert.equal(stream.queue.length, 0)
    stream.send('RESET')
    assert.ok(written > 0)
  })

  test('a connection that breaks ends the stream with an error', async (t) => {
    const { port } = await serve(t, '127.0.0.1', (socket) =>
      socket.once('data', () => socket.resetAndDestroy()),
    )
    const stream = await dial(port)
    stream.raw('DATA', Buffer.from('x'))
    await assert.rejects(
      stream.next('END'),
      (error: GuestError) => error.kind === 'IO' && error.errnoName === 'ECONNRESET',
    )
  })

  test('a reset or a lost connection closes the socket', async (t) => {
    const closed: Promise<void>[] = []
    const { port } = await serve(t, '127.0.0.1', (socket) => {
      socket.on('error', () => {})
      socket.resume()
      socket.on('end', () => socket.end())
      closed.push(new Promise((done) => socket.on('close', () => done())))
    })
    ;(await dial(port)).send('RESET')
    await dial(port)
    await until('both are connected', () => closed.length === 2)
    await guest.reconnect()
    await Promise.all(closed)
  })
})
