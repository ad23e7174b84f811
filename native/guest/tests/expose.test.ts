import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { after, afterEach, before, describe, test } from 'node:test'
import { Guest, until, within } from './harness.ts'
import { refused } from './refusal.ts'

describe('expose', () => {
  let guest: Guest
  let server: Server | undefined
  const accepted = new Set<Socket>()
  before(async () => {
    guest = await Guest.start()
  })
  after(() => guest.stop())
  afterEach(() => stopServing())

  const expose = async (socket = 'inside.sock'): Promise<number> =>
    (await guest.ask('EXPOSE', { socket })).count
  const serve = async (onSocket: (socket: Socket) => void, name = 'inside.sock') => {
    server = createServer({ allowHalfOpen: true }, (socket) => {
      accepted.add(socket)
      socket.on('error', () => {})
      socket.on('close', () => accepted.delete(socket))
      onSocket(socket)
    })
    await new Promise<void>((done) => server!.listen(guest.path(name), done))
  }
  const stopServing = async () => {
    if (!server) return
    for (const socket of accepted) socket.destroy()
    await new Promise((done) => server!.close(done))
    server = undefined
    rmSync(guest.path('inside.sock'), { force: true })
  }
  const call = async (port: number): Promise<Socket> => {
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
    socket.on('error', () => {})
    await once(socket, 'connect')
    return socket
  }

  test('joins connections on a loopback port with the socket, and passes half-closes on', async () => {
    await serve((socket) => {
      let heard = ''
      socket.on('data', (bytes) => {
        heard += bytes
      })
      socket.on('end', () => socket.end(`heard ${heard}`))
    })
    const port = await expose()
    for (const word of ['one', 'two']) {
      const socket = await call(port)
      socket.end(word)
      assert.equal(await text(socket), `heard ${word}`)
    }
    await until('both ends are closed', () => accepted.size === 0)
  })

  test('passes many bytes both ways at once, unchanged', async () => {
    await serve((socket) => socket.pipe(socket))
    const socket = await call(await expose())
    const bytes = randomBytes(8 * 1024 * 1024)
    const hash = createHash('sha256')
    const back = (async () => {
      for await (const chunk of socket) hash.update(chunk)
    })()
    socket.end(bytes)
    await within(back, 'the bytes')
    assert.equal(hash.digest('hex'), createHash('sha256').update(bytes).digest('hex'))
  })

  test('buffers little of what is not read, and continues when it is read', async () => {
    let taken = 0
    await serve((socket) => socket.pause())
    const socket = await call(await expose())
    const total = 64 * 1024 * 1024
    socket.end(Buffer.alloc(total))
    await until('the other end is there', () => accepted.size === 1)
    await guest.ping()
    assert.ok(socket.writableLength > total / 2, 'most of it waits with the sender')
    const [inner] = accepted
    inner!.on('data', (chunk) => {
      taken += chunk.length
    })
    inner!.resume()
    await until('all of it has arrived', () => taken === total)
    inner!.end()
  })

  test('answers with the same port again, also on another connection', async () => {
    await serve((socket) => socket.end('still here'))
    const port = await expose()
    assert.equal(await expose(), port)
    const socket = await call(port)
    await guest.reconnect()
    assert.equal(await expose(), port)
    assert.equal(await text(socket), 'still here')
    assert.notEqual(await expose('other.sock'), port)
  })

  test('closes connections while the server is away, and joins them when it is back', async () => {
    const port = await expose()
    assert.equal(await text(await call(port)), '')
    await serve((socket) => socket.end('back'))
    assert.equal(await text(await call(port)), 'back')
  })

  test('makes connections beyond the maximum wait', async () => {
    await serve((socket) => {
      socket.write('hello')
      socket.on('end', () => socket.end())
      socket.resume()
    })
    const port = await expose()
    const sockets = await Promise.all(Array.from({ length: 80 }, () => call(port)))
    let greeted = 0
    for (const socket of sockets) socket.once('data', () => greeted++)
    await until('the first are served', () => greeted === 64)
    await guest.ping()
    assert.equal(accepted.size, 64)
    for (const socket of accepted) socket.destroy()
    await until('the rest are served', () => greeted === 80)
    for (const socket of sockets) socket.destroy()
    await until('all are gone', () => accepted.size === 0)
  })

  test('ends one side when the other breaks', async () => {
    await serve((socket) => socket.once('data', () => socket.destroy()))
    const socket = await call(await expose())
    const closed = new Promise((done) => socket.once('close', done))
    socket.resume()
    socket.on('end', () => socket.end())
    socket.write('x')
    await within(closed, 'the end')
  })

  test('refuses a name that leads to another directory', async () => {
    for (const socket of ['', '.', '..', '../link.sock', 'a/b', '/tmp/x', 'x'.repeat(64)]) {
      await assert.rejects(guest.ask('EXPOSE', { socket }), refused('BAD_REQUEST', 'request'))
    }
    await assert.rejects(guest.ask('EXPOSE', {}), refused('BAD_REQUEST', 'request'))
  })

  test('exposes a few sockets and no more', async () => {
    await expose('third.sock')
    await expose('fourth.sock')
    await assert.rejects(expose('fifth.sock'), refused('LIMIT', 'request'))
    assert.ok(await expose())
  })
})

/** All that comes; then this end is closed too. */
async function text(socket: Socket): Promise<string> {
  const read = async () => {
    let all = ''
    for await (const chunk of socket) all += chunk
    return all
  }
  return within(
    read().catch(() => ''),
    'the end of a connection',
  )
}
