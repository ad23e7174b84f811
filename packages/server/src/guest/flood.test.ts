// Floods: whatever a hostile guest sends too much of is bounded, and other sandboxes do not feel it.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { encode, openLink, RawGuest, rejection, spec } from './testing.ts'

const SINK = { write() {} }
const SLOW = { write: () => new Promise<void>(() => {}) }
const ENTRY = { path: 'a', type: 1, size: 1, mode: 0o644, uid: 0, gid: 0, mtimeMs: 1 }

test('output beyond what the guest may keep closes the connection, and memory stays bounded', async (t) => {
  const { link, socketPath, logged } = await openLink(t)
  const guest = await RawGuest.greet(t, socketPath)
  const spawning = link.spawn(spec(['a']), SLOW)
  const { stream } = await guest.expect('SPAWN')
  guest.send('SPAWNED', stream, { pid: 5 })
  await spawning
  for (let i = 0; i <= 4; i++) guest.output(stream, 1, i * 65_536, Buffer.alloc(65_536))
  await guest.closed
  assert.match(logged[0]!.fields.reason!, /unacknowledged/)
})

test('data beyond the window closes the connection and fails the reader', async (t) => {
  const { link, socketPath, logged } = await openLink(t)
  const guest = await RawGuest.greet(t, socketPath)
  const reading = link.read('/a')
  const { stream } = await guest.expect('READ')
  guest.send('OPENED', stream, { entry: ENTRY })
  const { body } = await reading
  for (let i = 0; i < 5; i++) guest.send('DATA', stream, Buffer.alloc(262_144))
  await guest.closed
  assert.match(logged[0]!.fields.reason!, /window/)
  assert.equal((await rejection(body[Symbol.asyncIterator]().next())).code, 'sandbox_lost')
})

test('a flood of frames for an ended stream closes the connection', async (t) => {
  const { link, socketPath, logged } = await openLink(t)
  const guest = await RawGuest.greet(t, socketPath)
  const asked = rejection(link.mkdir('/a'))
  const { stream } = await guest.expect('MKDIR')
  guest.send('ERROR', stream, { kind: 3 })
  assert.equal((await asked).code, 'file_exists')
  guest.raw(Buffer.alloc(9 * 100_000, encode('END', stream)))
  await guest.closed
  assert.match(logged[0]!.fields.reason!, /ended streams/)
})

test('requests to a guest that does not read wait with their callers and do not pile up', async (t) => {
  const { link, socketPath } = await openLink(t)
  const guest = await RawGuest.greet(t, socketPath)
  guest.socket.pause()
  const before = process.memoryUsage().arrayBuffers
  const small = Array.from({ length: 100 }, () => rejection(link.mkdir(`/${'x'.repeat(4000)}`)))
  const large = Array.from({ length: 100 }, () =>
    rejection(link.spawn(spec(['a', 'x'.repeat(900_000)]), SINK)),
  )
  await sleep(50)
  const grown = process.memoryUsage().arrayBuffers - before
  assert.ok(grown < 32 * 1024 * 1024, `${grown} bytes are held`)
  link.lost('the test is over')
  for (const error of await Promise.all([...small, ...large])) assert.equal(error.code, 'sandbox_lost')
})

test('a guest that prints byte by byte and never reads does not make acknowledgements pile up', async (t) => {
  const { link, socketPath } = await openLink(t)
  const guest = await RawGuest.greet(t, socketPath)
  const spawning = link.spawn(spec(['a']), SINK)
  const { stream } = await guest.expect('SPAWN')
  guest.send('SPAWNED', stream, { pid: 5 })
  await spawning
  guest.socket.pause()
  const before = process.memoryUsage().arrayBuffers
  for (let offset = 0; offset < 200_000; offset++) {
    guest.output(stream, 1, offset, Buffer.from('x'))
    if (offset % 1000 === 0) await sleep(0)
  }
  const grown = process.memoryUsage().arrayBuffers - before
  assert.ok(grown < 64 * 1024 * 1024, `${grown} bytes are held`)
})

test('tiny pieces do not pin the chunks they came in', async (t) => {
  const { link, socketPath } = await openLink(t)
  const guest = await RawGuest.greet(t, socketPath)
  const reading = link.read('/a')
  const { stream } = await guest.expect('READ')
  guest.send('OPENED', stream, { entry: ENTRY })
  const { body } = await reading
  const tiny = encode('DATA', stream, Buffer.from('x'))
  const before = process.memoryUsage().arrayBuffers
  guest.raw(Buffer.alloc(tiny.length * 500_000, tiny))
  const pong = link.ping()
  guest.send('PONG', 0, (await guest.expect('PING')).payload)
  await pong
  const grown = process.memoryUsage().arrayBuffers - before
  assert.ok(grown < 64 * 1024 * 1024, `${grown} bytes for 500,000 received`)
  let bytes = 0
  for await (const piece of body) {
    bytes += piece.length
    if (bytes === 500_000) break
  }
})

test('a flood of connections ends the sandbox', async (t) => {
  const { link, socketPath } = await openLink(t)
  const lost = once(link.events, 'lost')
  let over = false
  void lost.then(() => {
    over = true
  })
  while (!over)
    await RawGuest.connect(t, socketPath).then(
      (guest) => guest.socket.destroy(),
      () => {},
    )
  assert.equal((await rejection(link.ready())).code, 'sandbox_lost')
})

test('one hostile sandbox leaves the others alone', async (t) => {
  const good = await openLink(t)
  const honest = await RawGuest.greet(t, good.socketPath)
  const bad = await openLink(t)
  for (let i = 0; i < 10; i++) {
    const guest = await RawGuest.greet(t, bad.socketPath)
    guest.raw(Buffer.alloc(1_000_000, 0xee))
    await guest.closed
  }
  assert.equal((await rejection(bad.link.ready())).code, 'sandbox_lost')
  const pong = good.link.ping()
  honest.send('PONG', 0, (await honest.expect('PING')).payload)
  await pong
})
