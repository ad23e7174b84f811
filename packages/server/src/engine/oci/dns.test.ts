import assert from 'node:assert/strict'
import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import { afterEach, describe, it } from 'node:test'
import { DnsForwarder, nameserversIn, type Upstream } from './dns.ts'

const ADDRESS = '127.0.0.1'
const QUESTION = Buffer.from('\x03www\x07example\x00\x00\x01\x00\x01', 'latin1')

describe('dns forwarder', () => {
  const closers: (() => unknown)[] = []
  afterEach(() => {
    for (const close of closers.splice(0).reverse()) close()
  })

  it('relays a query under another id and answers under the first', async () => {
    const seen: number[] = []
    const upstream = await nameserver((query) => {
      seen.push(query.readUInt16BE(0))
      return answerTo(query)
    })
    const ask = await client(await forwarder([upstream]))
    for (const id of [1, 2, 3]) assert.deepEqual((await ask(queryWith(id))).readUInt16BE(0), id)
    assert.notDeepEqual(seen, [1, 2, 3])
  })

  it('asks the next nameserver when one does not answer', async () => {
    const silent = await nameserver(() => undefined)
    const upstream = await nameserver(answerTo)
    const ask = await client(await forwarder([silent, upstream]))
    assert.equal((await ask(queryWith(7)))[3]! & 15, 0)
  })

  it('says that it failed when nobody answers', async () => {
    const ask = await client(await forwarder([]))
    const answer = await ask(queryWith(7))
    assert.equal(answer.readUInt16BE(0), 7)
    assert.equal(answer[2]! & 0x80, 0x80)
    assert.equal(answer[3]! & 15, 2)
  })

  it('ignores answers with a wrong id, that are no answers, or too short', async () => {
    const upstream = await nameserver((query, send) => {
      const wrong = answerTo(query)
      wrong.writeUInt16BE((query.readUInt16BE(0) + 1) & 0xffff, 0)
      for (const bytes of [wrong, query, query.subarray(0, 3), Buffer.alloc(0)]) send(bytes)
      const right = answerTo(query)
      right[3] = 0x83
      return right
    })
    const ask = await client(await forwarder([upstream]))
    assert.equal((await ask(queryWith(9)))[3]! & 15, 3)
  })

  it('survives what is not DNS', async () => {
    const upstream = await nameserver(answerTo)
    const port = await forwarder([upstream])
    const ask = await client(port)
    for (const bytes of [Buffer.alloc(0), Buffer.alloc(11), Buffer.alloc(60_000, 0xff)])
      ask(bytes).catch(() => {})
    const socket = connect(port, ADDRESS).on('error', () => {})
    socket.end(Buffer.alloc(100_000, 0xff))
    assert.equal((await ask(queryWith(5))).readUInt16BE(0), 5)
    socket.destroy()
  })

  it('bounds what one sandbox may have pending', async () => {
    let asked = 0
    const upstream = await nameserver(() => {
      asked++
      return undefined
    })
    const port = await forwarder([upstream])
    const flood = createSocket('udp4')
    closers.push(() => flood.close())
    for (let id = 0; id < 500; id++) flood.send(queryWith(id), port, ADDRESS)
    // A query from another address is answered after the flood's quota is full; by then the whole flood was handled.
    const other = createSocket('udp4')
    closers.push(() => other.close())
    other.bind(0, '127.0.0.2')
    await once(other, 'listening')
    const before = asked
    while (asked <= Math.max(before, 64)) {
      other.send(queryWith(1), port, ADDRESS)
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
    assert.ok(asked < 200, `${asked} of 500 were relayed`)
  })

  it('relays TCP both ways', async () => {
    const server = createServer((socket) => socket.pipe(socket))
    server.listen(0, ADDRESS)
    await once(server, 'listening')
    closers.push(() => server.close())
    const { port } = server.address() as { port: number }
    const socket = connect(await forwarder([{ address: ADDRESS, port }]), ADDRESS)
    socket.end('\x00\x05hello')
    let text = ''
    for await (const chunk of socket) text += chunk
    assert.equal(text, '\x00\x05hello')
  })

  it('reads resolv.conf', () => {
    const text =
      '# nameserver 1.1.1.1\nsearch x\nnameserver 127.0.0.53\n  nameserver\tfe80::1%eth0\nnameserver nonsense\n'
    assert.deepEqual(nameserversIn(text), [{ address: '127.0.0.53' }, { address: 'fe80::1%eth0' }])
  })

  async function forwarder(upstreams: readonly Upstream[]): Promise<number> {
    for (;;) {
      const port = 20_000 + Math.floor(Math.random() * 20_000)
      try {
        const dns = await DnsForwarder.listen({ address: ADDRESS, port, upstreams })
        closers.push(() => dns.close())
        return port
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error
      }
    }
  }

  type Reply = (query: Buffer, send: (bytes: Buffer) => void) => Buffer | undefined

  async function nameserver(reply: Reply): Promise<Upstream> {
    const socket = createSocket('udp4')
    socket.bind(0, ADDRESS)
    await once(socket, 'listening')
    closers.push(() => socket.close())
    socket.on('message', (query, from) => {
      const send = (bytes: Buffer) => socket.send(bytes, from.port, from.address)
      const answer = reply(query, send)
      if (answer) send(answer)
    })
    return { address: ADDRESS, port: socket.address().port }
  }

  async function client(port: number): Promise<(query: Buffer) => Promise<Buffer>> {
    const socket: Socket = createSocket('udp4')
    closers.push(() => socket.close())
    return async (query) => {
      socket.send(query, port, ADDRESS)
      const [answer] = await once(socket, 'message')
      return answer
    }
  }
})

function queryWith(id: number): Buffer {
  const header = Buffer.from([0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0])
  header.writeUInt16BE(id, 0)
  return Buffer.concat([header, QUESTION])
}

function answerTo(query: Buffer): Buffer {
  const answer = Buffer.from(query)
  answer[2] = 0x81
  answer[3] = 0x80
  return answer
}
