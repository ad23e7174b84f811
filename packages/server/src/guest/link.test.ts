// The link as a whole, and dialing, with the real guest.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { readdir, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { Collector, openGuest, openLink, RawGuest, rejection, spec, startGuest } from './testing.ts'

test('a port inside is dialed, both directions flow and end by themselves', async (t) => {
  const { link } = await openGuest(t)
  const port = await listen(t, (data) => Buffer.from(data).reverse())
  const socket = await link.dial(port, { host: '127.0.0.1' })
  const data = randomBytes(3_000_000)
  socket.end(data)
  const parts: Buffer[] = []
  for await (const part of socket) parts.push(part as Buffer)
  assert.deepEqual(Buffer.concat(parts), Buffer.from(data).reverse())
  assert.ok((await link.ports()).some((found) => found.port === port))
  const error = await rejection(link.dial(await freePort()))
  assert.match(error.message, /Nothing listens/)
})

test('a socket beside the link is exposed on the same port each time, and a socket elsewhere is refused', async (t) => {
  const { link } = await openGuest(t)
  const port = await link.expose('inside.sock')
  assert.ok(port > 0)
  link.hangup(0)
  assert.equal(await link.expose('inside.sock'), port)
  assert.ok((await link.ports()).some((found) => found.port === port && found.address === '127.0.0.1'))
  assert.equal((await rejection(link.expose('../link.sock'))).code, 'bad_request')
})

test('a dial that is destroyed or aborted resets its stream', async (t) => {
  const { link } = await openGuest(t)
  const port = await listen(t, (data) => data)
  const first = await link.dial(port)
  first.destroy()
  await once(first, 'close')
  const abort = new AbortController()
  const second = await link.dial(port, { signal: abort.signal })
  const closed = new Promise((resolve) => second.once('close', resolve))
  abort.abort()
  await closed
  assert.equal(link.connected, true)
  await link.ping()
})

test('concurrent requests are bounded, sequential ones are not, and processes do not count', async (t) => {
  const { link } = await openGuest(t, { maxRequests: 4 })
  const processes = await Promise.all(
    Array.from({ length: 8 }, () => link.spawn(spec(['sleep', '100']), new Collector())),
  )
  for (let i = 0; i < 20; i++) await link.stat('/')
  for (let i = 0; i < 20; i++) await rejection(link.read('/no/such/file'))
  for (let i = 0; i < 20; i++) for await (const _ of (await link.read('/etc/passwd')).body) break
  const results = await Promise.allSettled(Array.from({ length: 10 }, () => link.stat('/')))
  const refused = results.filter((result) => result.status === 'rejected')
  assert.equal(refused.length, 6)
  for (const { reason } of refused) assert.equal(reason.code, 'limit_exceeded')
  for (const process of processes) process.forget()
})

test('after killAll the processes that ran are over, killed, and their ids are free', async (t) => {
  const { link, socketPath } = await openLink(t)
  const guest = await RawGuest.greet(t, socketPath)
  const spawning = link.spawn(spec(['a'], { id: 'p' }), new Collector())
  guest.send('SPAWNED', (await guest.expect('SPAWN')).stream, { pid: 5 })
  const { exited } = await spawning
  const killing = link.killAll()
  guest.send('OK', (await guest.expect('KILL_ALL')).stream)
  await killing
  assert.equal((await exited).signal, 9)
  const again = link.spawn(spec(['a'], { id: 'p' }), new Collector())
  guest.send('SPAWNED', (await guest.expect('SPAWN')).stream, { pid: 6 })
  assert.equal((await again).pid, 6)
})

test('after a hangup the guest comes back and nothing is lost', async (t) => {
  const { link } = await openGuest(t)
  const sink = new Collector()
  const process = await link.spawn(spec(['sh', '-c', 'echo a; sleep 0.1; echo b']), sink)
  const gone = once(link.events, 'disconnect')
  link.hangup(10)
  await gone
  assert.equal(link.connected, false)
  assert.equal((await process.exited).code, 0)
  assert.equal(sink.stdout, 'a\nb\n')
  process.forget()
})

test('closing rejects everything that is pending, removes the socket, and can be done twice', async (t) => {
  const { link, socketPath, directory } = await openLink(t)
  const waiting = [rejection(link.ready()), rejection(link.stat('/a')), rejection(link.ping())]
  const guest = await RawGuest.connect(t, socketPath)
  await Promise.all([link.close(), link.close()])
  await guest.closed
  for (const error of await Promise.all(waiting)) assert.equal(error.code, 'sandbox_lost')
  assert.equal((await rejection(link.mkdir('/a'))).code, 'sandbox_lost')
  assert.deepEqual(await readdir(directory), [])
})

test('when the sandbox is gone all pending and later calls fail', async (t) => {
  const { link } = await openGuest(t)
  const process = await link.spawn(spec(['sleep', '100']), new Collector())
  const reading = rejection(
    link.watch('/tmp', { recursive: false }).then((events) => events[Symbol.asyncIterator]().next()),
  )
  await link.ping()
  link.lost('the kernel killed it')
  assert.match((await rejection(process.exited)).message, /the kernel killed it/)
  assert.equal((await reading).code, 'sandbox_lost')
  assert.match((await rejection(link.ready())).message, /the kernel killed it/)
})

test('a stale socket is replaced, a file is not', async (t) => {
  const { directory } = await openLink(t)
  await writeFile(join(directory, 'file'), 'x')
  assert.equal((await rejection(openLink(t, { socketPath: join(directory, 'file') }))).code, 'internal')
  const path = join(directory, 'stale.sock')
  const server = createServer().listen(path)
  await once(server, 'listening')
  t.after(() => server.close())
  const { link } = await openLink(t, { socketPath: path })
  startGuest(t, path)
  await link.ready({ timeoutMs: 5000 })
})

async function listen(t: TestContext, answer: (data: Buffer) => Uint8Array): Promise<number> {
  const server = createServer({ allowHalfOpen: true }, async (socket) => {
    socket.on('error', () => {})
    const parts: Buffer[] = []
    socket.on('data', (part) => parts.push(part))
    socket.on('end', () => socket.end(answer(Buffer.concat(parts))))
    t.after(() => socket.destroy())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  return (server.address() as { port: number }).port
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  server.close()
  await once(server, 'close')
  return port
}
