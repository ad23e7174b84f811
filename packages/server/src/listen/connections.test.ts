import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { test } from 'node:test'
import { Connections, markKnown } from './connections.ts'

const MAX = 8
const STRANGERS = 6

/** `/known` shows a key, `/wait` is never answered. */
async function start(): Promise<Server> {
  const server = createServer((incoming, outgoing) => {
    if (incoming.url === '/known') markKnown(incoming.socket)
    if (incoming.url !== '/wait') outgoing.end('ok')
    else outgoing.write('begun')
  })
  new Connections({ max: MAX }).watch(server)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return server
}

async function open(server: Server, path?: string): Promise<Socket> {
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1').on('error', () => {})
  await once(socket, 'connect')
  if (path === undefined) return socket
  socket.write(`GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`)
  await once(socket, 'data')
  return socket
}

test('the stranger that has been idle longest makes room, not one that is answered nor one that is known', async (t) => {
  const server = await start()
  t.after(() => server.close().closeAllConnections())
  const known = await open(server, '/known')
  const busy = await open(server, '/wait')
  const oldest = await open(server)
  const next = await open(server)
  for (let n = 3; n < STRANGERS; n++) await open(server, '/')
  const closed = once(oldest, 'close')
  await open(server, '/')
  await closed
  assert.ok(!known.closed && !busy.closed && !next.closed)
})

test('when all strangers are busy the next is turned away, and those who are known stay', async (t) => {
  const server = await start()
  t.after(() => server.close().closeAllConnections())
  const known = await open(server, '/known')
  const busy: Socket[] = []
  for (let n = 0; n < STRANGERS; n++) busy.push(await open(server, '/wait'))
  await once((await open(server)).resume(), 'close')
  assert.ok([known, ...busy].every((socket) => !socket.closed))
  known.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n')
  assert.match(String(await once(known, 'data')), /200 OK/)
})
