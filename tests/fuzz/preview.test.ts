// A hostile program behind a preview and behind a health check: it answers with bytes that are nearly HTTP. The visitor gets an answer or a
// broken connection, the check a verdict, and the server goes on.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { after, before, test } from 'node:test'
import { checkHealth } from '../../packages/server/src/data/services/health.ts'
import type { Guest } from '../../packages/server/src/guest/guest.ts'
import { type Lab, openLab, type Shown } from '../../packages/server/test/support/preview.ts'
import { corpus, Random, repeatedly, SEED } from './fuzz.ts'

const WHOLE = [
  'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello',
  'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\n\r\n5\r\nhello\r\n0\r\nX: y\r\n\r\n',
  'HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\n\r\nHTTP/1.1 200 OK\r\nSet-Cookie: a=b\r\n\r\nuntil the end',
  'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: x\r\n\r\n\x81\x02hi',
  'HTTP/1.0 302 Found\r\nLocation: //elsewhere.example/\r\nConnection: keep-alive\r\n\r\n',
  'HTTP/1.1 204 No Content\r\nContent-Length: 3\r\n\r\nabcHTTP/1.1 200 OK\r\n\r\n',
].map((text) => Buffer.from(text, 'latin1'))
const ASK = [
  'GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n',
  'POST / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\nab',
  'HEAD / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n',
  'GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n',
]
const AT_ONCE = 16
/** A program may keep its visitor waiting; it is the visitor who leaves. */
const PATIENCE_MS = 500

let lab: Lab
let shown: Shown
let next: () => Buffer
before(async () => {
  lab = await openLab()
  shown = await lab.showTcp((socket) => answer(socket, next()))
})
after(() => lab[Symbol.asyncDispose]())

test(`a preview passes on what is nearly HTTP, or says that it is none (seed ${SEED})`, async () => {
  const random = new Random(SEED + 3)
  const kept = corpus('preview')
  next = () => kept.pop() ?? random.bytes(random.pick(WHOLE))
  const cases = await repeatedly(async () => {
    const heard = await visit(random.pick(ASK))
    assert.ok(heard === '' || heard.startsWith('HTTP/1.1 '), heard.slice(0, 500))
    assert.ok(!heard.includes('"internal"'), heard.slice(0, 500))
  }, AT_ONCE)
  assert.deepEqual(
    lab.api.logged.filter((line) => line.includes('preview failed')),
    [],
  )
  assert.equal((await lab.api.call('GET', '/v1/info')).status, 200)
  console.log(`${cases} visits`)
})

test(`a health check of what is nearly HTTP ends with a verdict (seed ${SEED})`, async () => {
  const random = new Random(SEED + 4)
  const kept = corpus('preview')
  const program = createServer((socket) => answer(socket, kept.pop() ?? random.bytes(random.pick(WHOLE))))
  await once(program.listen(0, '127.0.0.1'), 'listening')
  const { port } = program.address() as AddressInfo
  const guest = { dial: async () => connect(port, '127.0.0.1') } as unknown as Pick<Guest, 'dial'>
  const target = { host: '127.0.0.1', port, path: '/', timeoutMs: PATIENCE_MS } as const
  try {
    const cases = await repeatedly(async () => {
      const { healthy, status } = await checkHealth(guest, target, new AbortController().signal)
      assert.equal(typeof healthy, 'boolean')
      assert.ok(status.length <= 200)
    }, AT_ONCE)
    console.log(`${cases} checks`)
  } finally {
    program.close()
  }
})

function answer(socket: Socket, bytes: Buffer): void {
  socket.on('error', () => {})
  socket.once('data', () => socket.end(bytes))
}

function visit(bytes: string): Promise<string> {
  const { hostname, port } = new URL(shown.url)
  return new Promise((resolve) => {
    let heard = ''
    const socket = connect(Number(port), hostname, () => socket.write(bytes))
    socket.setTimeout(PATIENCE_MS, () => socket.destroy())
    socket.on('data', (chunk) => {
      heard += chunk.toString('latin1')
    })
    socket.on('error', () => {})
    socket.on('close', () => resolve(heard))
  })
}
