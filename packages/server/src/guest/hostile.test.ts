// Inside is hostile: a raw guest breaks every rule. After each breach the server lives, the call that was pending ended
// with a clear error, and the next connection is served.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { MESSAGE, OUTPUT_BUFFER, SENDER } from './messages.gen.ts'
import {
  encode,
  openLink,
  outputPayload,
  RawGuest,
  rawFrame,
  rejection,
  spec,
  type TestLink,
} from './testing.ts'

const SINK = { write() {} }
const _SLOW = { write: () => new Promise<void>(() => {}) }
const ENTRY = { path: 'a', type: 1, size: 1, mode: 0o644, uid: 0, gid: 0, mtimeMs: 1 }

test('a connection that does not say HELLO in time is dropped and the next one served', async (t) => {
  const { link, socketPath } = await openLink(t, { helloTimeoutMs: 30 })
  const slow = await RawGuest.connect(t, socketPath)
  slow.raw(encode('HELLO', 0, { generation: 1, bootId: 'x' }).subarray(0, 12))
  await slow.closed
  assert.equal(link.connected, false)
  await RawGuest.greet(t, socketPath)
  assert.equal(link.connected, true)
})

test('a second connection is refused while the first is alive', async (t) => {
  const { link, socketPath } = await openLink(t)
  const first = await RawGuest.greet(t, socketPath)
  const second = await RawGuest.connect(t, socketPath)
  second.send('HELLO', 0, { generation: 1, bootId: 'boot-2' })
  await second.closed
  assert.equal(link.bootId, 'boot-1')
  const pong = link.ping()
  first.send('PONG', 0, (await first.expect('PING')).payload)
  await pong
})

test('a guest of another generation, or without a fit boot id, is not welcomed', async (t) => {
  const { link, socketPath, logged } = await openLink(t)
  for (const fields of [
    { generation: 2, bootId: 'x' },
    { generation: 1 },
    { generation: 1, bootId: 'a\nb' },
  ]) {
    const guest = await RawGuest.connect(t, socketPath)
    guest.send('HELLO', 0, fields)
    await guest.closed
  }
  assert.equal(link.connected, false)
  assert.equal(logged.length, 3)
})

test('every message that only the server may send, and every unknown type, closes the connection', async (t) => {
  const forbidden = Object.entries(MESSAGE).filter(
    ([name]) => SENDER[name as keyof typeof SENDER] === 'server',
  )
  for (const type of [...forbidden.map(([, code]) => code), 0, 99, 255]) {
    const { socketPath, logged } = await openLink(t)
    const guest = await RawGuest.greet(t, socketPath)
    guest.raw(rawFrame(type, 1, Buffer.alloc(0)))
    await guest.closed
    assert.match(logged[0]!.fields.reason!, /may not send/)
  }
})

const BEFORE_ANY_REQUEST: Record<string, () => Buffer> = {
  'an announced length over the maximum': () => rawFrame(MESSAGE.OK, 1, Buffer.alloc(0), 0xffff_ffff),
  'an answer on a stream that was never opened': () => encode('OK', 5),
  'data on stream 0': () => encode('DATA', 0, Buffer.from('x')),
  'HELLO on a stream': () => encode('HELLO', 3, { generation: 1, bootId: 'x' }),
  'a second HELLO': () => encode('HELLO', 0, { generation: 1, bootId: 'x' }),
  'a PONG without a PING': () => encode('PONG', 0, Buffer.from('1234')),
  'a million PONGs': () => Buffer.alloc(13_000_000, encode('PONG', 0, Buffer.from('1234'))),
  'random bytes': () => Buffer.alloc(200_000, 0xa5),
}
for (const [what, bytes] of Object.entries(BEFORE_ANY_REQUEST))
  test(`${what} closes the connection and the next one is served`, async (t) => {
    const opened = await openLink(t)
    const guest = await RawGuest.greet(t, opened.socketPath)
    guest.raw(bytes())
    await guest.closed
    await servesAgain(t, opened)
  })

type Reply = (guest: RawGuest, stream: number) => void
const WRONG_ANSWERS: Record<string, { ask: (opened: TestLink) => Promise<unknown>; reply: Reply }> = {
  'STAT answered without an entry': {
    ask: ({ link }) => link.stat('/a'),
    reply: (guest, stream) => guest.send('OK', stream),
  },
  'STAT answered with a fifth type of entry': {
    ask: ({ link }) => link.stat('/a'),
    reply: (guest, stream) => guest.send('OK', stream, { entry: [{ ...ENTRY, type: 5 }] }),
  },
  'STAT answered with a path of a megabyte': {
    ask: ({ link }) => link.stat('/a'),
    reply: (guest, stream) =>
      guest.send('OK', stream, { entry: [{ ...ENTRY, path: 'x'.repeat(1_000_000) }] }),
  },
  'STAT answered with a size beyond 2^53': {
    ask: ({ link }) => link.stat('/a'),
    reply: (guest, stream) =>
      guest.raw(
        rawFrame(MESSAGE.OK, stream, Buffer.from([1, 13, 0, 0, 0, 3, 8, 0, 0, 0, ...Array(8).fill(255)])),
      ),
  },
  'MKDIR answered with DATA': {
    ask: ({ link }) => link.mkdir('/a'),
    reply: (guest, stream) => guest.send('DATA', stream, Buffer.from('x')),
  },
  'MKDIR answered with a malformed ERROR': {
    ask: ({ link }) => link.mkdir('/a'),
    reply: (guest, stream) => guest.send('ERROR', stream, Buffer.from([1, 200, 0, 0, 0])),
  },
  'LIST answered with more entries than asked for': {
    ask: ({ link }) => link.list('/a', { limit: 2 }),
    reply: (guest, stream) => guest.send('ENTRIES', stream, { entry: [ENTRY, ENTRY, ENTRY] }),
  },
  'LIST answered with an entry outside the directory': {
    ask: ({ link }) => link.list('/a'),
    reply: (guest, stream) => guest.send('ENTRIES', stream, { entry: [{ ...ENTRY, path: 'b/../../etc' }] }),
  },
  'READ answered with DATA before OPENED': {
    ask: ({ link }) => link.read('/a'),
    reply: (guest, stream) => guest.send('DATA', stream, Buffer.from('x')),
  },
  'WRITE answered with OK before its end': {
    ask: ({ link }) => link.write('/a', never()),
    reply: (guest, stream) => {
      guest.send('OPENED', stream)
      guest.send('OK', stream, { entry: [ENTRY] })
    },
  },
  'WRITE answered with a window that shrinks': {
    ask: ({ link }) => link.write('/a', never()),
    reply: (guest, stream) => {
      guest.send('OPENED', stream)
      guest.send('WINDOW', stream, { limit: 5 })
    },
  },
  'REALPATH answered with a relative path': {
    ask: ({ link }) => link.realpath('/a'),
    reply: (guest, stream) => guest.send('OK', stream, { path: 'x' }),
  },
  'PORTS answered with port 70000': {
    ask: ({ link }) => link.ports(),
    reply: (guest, stream) => guest.send('OK', stream, { port: [{ port: 70_000 }] }),
  },
  'PORTS answered with an address full of control characters': {
    ask: ({ link }) => link.ports(),
    reply: (guest, stream) => guest.send('OK', stream, { port: [{ port: 80, address: '\x1b[31m' }] }),
  },
  'PORTS answered with a process that cannot be': {
    ask: ({ link }) => link.ports(),
    reply: (guest, stream) =>
      guest.send('OK', stream, { port: [{ port: 80, address: '::', pid: 2 ** 31, session: 1 }] }),
  },
  'EXPOSE answered without a port': {
    ask: ({ link }) => link.expose('inside.sock'),
    reply: (guest, stream) => guest.send('OK', stream),
  },
  'EXPOSE answered with port 70000': {
    ask: ({ link }) => link.expose('inside.sock'),
    reply: (guest, stream) => guest.send('OK', stream, { count: 70_000 }),
  },
  'PROCESSES answered with an endless id': {
    ask: ({ link }) => link.processes(),
    reply: (guest, stream) => guest.send('OK', stream, { process: [{ id: 'x'.repeat(10_000) }] }),
  },
  'SPAWN answered with OUTPUT': {
    ask: ({ link }) => link.spawn(spec(['a']), SINK),
    reply: (guest, stream) => guest.output(stream, 1, 0, Buffer.from('x')),
  },
  'SPAWN answered with EXITED': {
    ask: ({ link }) => link.spawn(spec(['a']), SINK),
    reply: (guest, stream) => guest.send('EXITED', stream, { code: 0 }),
  },
  'DIAL answered with DATA before OPENED': {
    ask: ({ link }) => link.dial(80),
    reply: (guest, stream) => guest.send('DATA', stream, Buffer.from('x')),
  },
}
for (const [what, { ask, reply }] of Object.entries(WRONG_ANSWERS))
  test(`${what} closes the connection, and repeated often it ends the sandbox`, async (t) => {
    const opened = await openLink(t)
    const asked = rejection(ask(opened))
    for (let round = 0; round < 10; round++) {
      const guest = await RawGuest.greet(t, opened.socketPath).catch(() => undefined)
      if (!guest) break
      const request = await Promise.race([guest.next(), sleep(50, undefined)])
      if (request?.name === 'ATTACH') guest.send('OK', request.stream)
      else if (request) reply(guest, request.stream)
      else guest.send('OK', 77)
      await guest.closed
    }
    const error = await asked
    assert.equal(error.code, 'sandbox_lost')
    assert.equal((await rejection(opened.link.ready())).code, 'sandbox_lost')
    assert.equal(opened.logged.length, 10)
  })

const WRONG_PROCESSES: Record<string, Reply> = {
  'output at the wrong offset': (guest, stream) => guest.output(stream, 1, 1, Buffer.from('x')),
  'output that came before': (guest, stream) => {
    guest.output(stream, 1, 0, Buffer.from('abc'))
    guest.output(stream, 1, 0, Buffer.from('abc'))
  },
  'output on a third channel': (guest, stream) => guest.output(stream, 3, 0, Buffer.from('x')),
  'empty output': (guest, stream) => guest.output(stream, 1, 0, Buffer.alloc(0)),
  'output shorter than its prefix': (guest, stream) => guest.send('OUTPUT', stream, Buffer.from([1, 0])),
  'output at 2^60': (guest, stream) => {
    const payload = outputPayload(1, 0, Buffer.from('x'))
    payload[8] = 0x10
    guest.send('OUTPUT', stream, payload)
  },
  'an OUTPUT frame over its maximum': (guest, stream) =>
    guest.output(stream, 1, 0, Buffer.alloc(OUTPUT_BUFFER + 1)),
  'a second SPAWNED': (guest, stream) => guest.send('SPAWNED', stream, { pid: 6 }),
  'ATTACHED out of nowhere': (guest, stream) => guest.send('ATTACHED', stream, { process: { id: 'x' } }),
  'DATA on a process': (guest, stream) => guest.send('DATA', stream, Buffer.from('x')),
  'OK on a process': (guest, stream) => guest.send('OK', stream),
  'a stdin window that falls': (guest, stream) => guest.send('STDIN_WINDOW', stream, { limit: 1 }),
  'a stdin window out of thin air': (guest, stream) => guest.send('STDIN_WINDOW', stream, { limit: 2 ** 50 }),
  'an exit before the last output': (guest, stream) => guest.send('EXITED', stream, { outputEnd: 9 }),
  'an exit code of 256': (guest, stream) => guest.send('EXITED', stream, { code: 256 }),
}
for (const [what, reply] of Object.entries(WRONG_PROCESSES))
  test(`${what} closes the connection, and the process goes on after the next`, async (t) => {
    const opened = await openLink(t)
    const guest = await RawGuest.greet(t, opened.socketPath)
    const spawning = opened.link.spawn(spec(['a'], { id: 'p', stdin: true }), SINK)
    const { stream } = await guest.expect('SPAWN')
    guest.send('SPAWNED', stream, { pid: 5 })
    const process = await spawning
    reply(guest, stream)
    await guest.closed
    assert.equal(opened.logged.length, 1)
    await goesOn(t, opened, process.exited)
  })

test('EXITED twice closes the connection, and the exit stands', async (t) => {
  const { link, socketPath } = await openLink(t)
  const guest = await RawGuest.greet(t, socketPath)
  const spawning = link.spawn(spec(['a']), SINK)
  const { stream } = await guest.expect('SPAWN')
  guest.send('SPAWNED', stream, { pid: 5 })
  guest.send('EXITED', stream, { code: 3, outputEnd: 0 })
  guest.send('EXITED', stream, { code: 4, outputEnd: 0 })
  assert.equal((await (await spawning).exited).code, 3)
  await guest.closed
})

test('more bytes of a file than asked for close the connection', async (t) => {
  const { link, socketPath } = await openLink(t)
  const guest = await RawGuest.greet(t, socketPath)
  const reading = link.read('/a', { length: 3 })
  const { stream } = await guest.expect('READ')
  guest.send('OPENED', stream, { entry: ENTRY })
  guest.send('DATA', stream, Buffer.from('abcd'))
  await reading
  await guest.closed
})

test('frames that were under way when their stream ended are ignored', async (t) => {
  const { link, socketPath, logged } = await openLink(t)
  const guest = await RawGuest.greet(t, socketPath)
  const reading = link.read('/a')
  const { stream } = await guest.expect('READ')
  guest.send('OPENED', stream, { entry: ENTRY })
  await (await reading).body[Symbol.asyncIterator]().return?.()
  await guest.expect('RESET')
  for (let i = 0; i < 4; i++) guest.send('DATA', stream, Buffer.alloc(262_144))
  guest.send('END', stream)
  const pong = link.ping()
  guest.send('PONG', 0, (await guest.expect('PING')).payload)
  await pong
  assert.deepEqual(logged, [])
})

test('text of the guest is cut and cleaned before it is shown', async (t) => {
  const { link, socketPath } = await openLink(t)
  const guest = await RawGuest.greet(t, socketPath)
  const asked = rejection(link.mkdir('/a'))
  const { stream } = await guest.expect('MKDIR')
  const message = `\x1b[31m${'x'.repeat(100_000)}\n`
  guest.send('ERROR', stream, {
    kind: 15,
    errnoName: 'E\x00IO'.replace('\0', '\n'),
    stage: 'a'.repeat(9999),
    message,
  })
  const error = await asked
  assert.equal(error.code, 'io_error')
  assert.ok(error.message.length < 400)
  assert.doesNotMatch(JSON.stringify(error), /\\u001b|\\n/)
})

test('a dial that breaks before its error is listened for does not crash the server', async (t) => {
  const { link, socketPath } = await openLink(t)
  const guest = await RawGuest.greet(t, socketPath)
  const dialing = link.dial(80)
  const { stream } = await guest.expect('DIAL')
  guest.raw(Buffer.concat([encode('OPENED', stream), encode('ERROR', stream, { kind: 15 })]))
  const socket = await dialing
  if (!socket.closed) await once(socket, 'close')
  assert.equal(socket.destroyed, true)
})

async function servesAgain(t: TestContext, { link, socketPath, logged }: TestLink): Promise<void> {
  assert.equal(logged.length, 1)
  const guest = await RawGuest.greet(t, socketPath)
  const asked = link.stat('/a')
  const { stream } = await guest.expect('STAT')
  guest.send('OK', stream, { entry: [ENTRY] })
  assert.equal((await asked).path, 'a')
}

async function goesOn(t: TestContext, opened: TestLink, exited: Promise<{ code: number }>): Promise<void> {
  const guest = await RawGuest.greet(t, opened.socketPath)
  const { stream, fields } = await guest.expect('ATTACH')
  const at = fields.offset as number
  guest.send('ATTACHED', stream, { process: { id: 'p', pid: 5, running: 1, outputStart: at, outputEnd: at } })
  guest.send('EXITED', stream, { code: 42, outputEnd: at })
  assert.equal((await exited).code, 42)
}

async function* never(): AsyncGenerator<Uint8Array> {
  await new Promise(() => {})
}
