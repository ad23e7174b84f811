import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { WebSocket, WebSocketServer } from 'ws'
import { keepAlive, send } from './socket.ts'

test('a client that reads nothing for long is ended, and one that reads is not', async (t) => {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1' })
  t.after(() => server.close())
  await once(server, 'listening')
  const url = `ws://127.0.0.1:${(server.address() as AddressInfo).port}`
  const connect = async () => {
    const accepted = once(server, 'connection') as Promise<[WebSocket]>
    const client = new WebSocket(url)
    t.after(() => client.terminate())
    await once(client, 'open')
    const [served] = await accepted
    return { client, served }
  }
  const reading = await connect()
  const stalled = await connect()
  stalled.client.pause()
  const ended = once(stalled.served, 'close')
  for (const { served } of [reading, stalled]) {
    // More than the kernel takes for a client that does not read.
    void send(served, Buffer.alloc(64 * 1024 * 1024))
    keepAlive(served, 200)
  }
  const [[message]] = await Promise.all([once(reading.client, 'message'), ended])
  assert.equal((message as Buffer).length, 64 * 1024 * 1024)
  assert.equal(reading.served.readyState, WebSocket.OPEN)
})
