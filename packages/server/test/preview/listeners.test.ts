import assert from 'node:assert/strict'
import { connect, createServer } from 'node:net'
import { test } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import { Connections } from '../../src/listen/connections.ts'
import { Listeners } from '../../src/preview/listeners.ts'
import type { Handler } from '../../src/preview/visitors.ts'
import { accepts, freePort, listenOn } from '../support/preview.ts'

const connections = new Connections({ max: 64 })
const HELLO: Handler = {
  serve: (incoming, outgoing) => {
    incoming.resume().on('end', () => outgoing.end('hello'))
  },
  isUpgrade: () => false,
  upgrade: (_incoming, socket) => socket.destroy(),
}

test('the wanted port is taken when it is free, else another; of a range only those in it', async (t) => {
  const taken = createServer()
  const port = await listenOn(taken)
  t.after(() => taken.close())
  const anywhere = new Listeners({ connections, host: '127.0.0.1', range: undefined })
  t.after(() => anywhere.closeAll())
  const free = await freePort()
  assert.equal(await anywhere.open('a', free, HELLO), free)
  assert.notEqual(await anywhere.open('b', port, HELLO), port)

  const narrow = new Listeners({ connections, host: '127.0.0.1', range: { from: port, to: port } })
  await assert.rejects(narrow.open('c', free, HELLO), { code: 'limit_exceeded' })
  await anywhere.close('a')
  const one = new Listeners({ connections, host: '127.0.0.1', range: { from: free, to: free } })
  t.after(() => one.closeAll())
  assert.equal(await one.open('d', null, HELLO), free)
  await one.close('d')
  await one.close('d')
  assert.equal(await accepts(`http://127.0.0.1:${free}`), false)
})

test('the head of a request has little time, its body as much as it wants', async (t) => {
  const listeners = new Listeners({ connections, host: '127.0.0.1', range: undefined, headTimeoutMs: 200 })
  t.after(() => listeners.closeAll())
  let bodies = 0
  const serve: Handler['serve'] = (incoming, outgoing) => {
    bodies++
    HELLO.serve(incoming, outgoing)
  }
  const port = await listeners.open('a', null, { ...HELLO, serve })
  const send = (text: string) => {
    const socket = connect(port, '127.0.0.1').on('error', () => {})
    t.after(() => socket.destroy())
    socket.write(text)
    return socket
  }
  const head = 'POST / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 4\r\n\r\n'
  let body = send(head)
  while (bodies === 0) {
    // On a machine that stalls even a whole head may come too late.
    if (body.destroyed) body = send(head)
    await setTimeout(10, undefined, { signal: t.signal })
  }
  const slow = send('GET / HTTP/1.1\r\n').resume()
  while (!slow.destroyed) {
    if (slow.writable) slow.write('X-Slow: x\r\n')
    await setTimeout(20, undefined, { signal: t.signal })
  }
  body.write('body')
  let answer = ''
  for await (const chunk of body) answer += chunk
  assert.match(answer, /^HTTP\/1.1 200 OK[\s\S]*hello/)
  assert.equal(bodies, 1)
})
