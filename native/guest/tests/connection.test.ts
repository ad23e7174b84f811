import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { after, before, describe, test } from 'node:test'
import { encodeFields } from '../../../packages/server/src/wire/fields.ts'
import { encodeFrame } from '../../../packages/server/src/wire/frames.ts'
import {
  type Fields,
  Guest,
  type GuestError,
  INITIAL_WINDOW,
  isAlive,
  MAX_DATA,
  MESSAGE,
  until,
} from './harness.ts'

let guest: Guest
before(async () => {
  guest = await Guest.start()
})
after(() => guest.stop())

/** Does something that must make the guest close, and waits until it has reconnected. */
async function breaks(what: () => void) {
  const closed = guest.closed()
  what()
  await closed
  await guest.connected()
  assert.equal(await guest.ping('back'), 'back')
}

describe('the connection', () => {
  test('begins with HELLO, and the boot id stays', async () => {
    assert.equal(guest.hello.generation, 1)
    assert.match(guest.hello.bootId, /^[0-9a-f]{32}$/)
    const { bootId } = guest.hello
    await guest.reconnect()
    assert.equal(guest.hello.bootId, bootId)
  })

  test('answers pings in order with the rest', async () => {
    const pongs = Promise.all(['1', '2', 'x'.repeat(64), ''].map((text) => guest.ping(text)))
    assert.deepEqual(await pongs, ['1', '2', 'x'.repeat(64), ''])
  })

  test('is dialed again after HANGUP', async () => {
    const running = await guest.spawn(['sleep', '1000'], { id: 'through-hangup' })
    await breaks(() => guest.send('HANGUP', 0, { delayMs: 30 }))
    assert.ok(isAlive(running.pid))
    guest.request('ATTACH', { id: 'through-hangup', offset: 0 }).send('FORGET')
  })

  test('only WELCOME is accepted as the first frame', async () => {
    guest.autoWelcome = false
    const connections = guest.connections
    const closed = guest.closed()
    guest.drop()
    await closed
    while (guest.connections === connections || !guest.socket)
      await new Promise((done) => setTimeout(done, 5))
    const early = guest.closed()
    guest.send('PORTS', 1)
    await early
    while (!guest.socket) await new Promise((done) => setTimeout(done, 5))
    const wrong = guest.closed()
    guest.send('WELCOME', 0, { generation: 2 })
    await wrong
    guest.autoWelcome = true
    await guest.connected()
    assert.equal(await guest.ping(), 'ping')
  })

  test('is closed on garbage, and processes keep running', async () => {
    const running = await guest.spawn(['sleep', '1000'], { id: 'steady' })
    await breaks(() => guest.socket!.write(Buffer.alloc(100, 0xff)))
    await breaks(() => guest.socket!.write(encodeFrame(200, 1, Buffer.alloc(3))))
    await breaks(() => guest.socket!.write(encodeFrame(MESSAGE.HELLO, 0, Buffer.alloc(0))))
    await breaks(() => guest.socket!.write(encodeFrame(MESSAGE.OK, 1, Buffer.alloc(0))))
    await breaks(() => guest.socket!.write(encodeFrame(MESSAGE.WELCOME, 0, encodeFields([], {}))))
    await breaks(() => guest.raw(MESSAGE.PING, 0, Buffer.alloc(65)))
    await breaks(() => guest.raw(MESSAGE.PING, 1, Buffer.alloc(1)))
    await breaks(() => guest.send('STAT', 0, { path: '/' }))
    const tooLong = Buffer.alloc(9)
    tooLong.writeUInt32LE(1024 * 1024 + 1)
    tooLong[4] = MESSAGE.STAT
    await breaks(() => guest.socket!.write(tooLong))
    assert.ok(isAlive(running.pid))
    const stream = guest.request('ATTACH', { id: 'steady', offset: 0 })
    await stream.next('ATTACHED')
    stream.send('FORGET')
  })

  test('random bytes never end the guest', async () => {
    for (let i = 0; i < 20; i++) {
      const closed = guest.closed()
      guest.socket!.write(randomBytes(100 + i * 300))
      guest.socket!.end()
      await closed
      await guest.connected()
    }
    assert.equal(await guest.ping(), 'ping')
  })

  test('is closed when a stream number is used twice, or its window is passed', async () => {
    const write = async () => {
      const stream = guest.request('WRITE', { path: guest.path('never') })
      await stream.next('OPENED')
      return stream
    }
    const used = await write()
    await breaks(() => used.send('STAT', { path: '/' }))
    const large = await write()
    await breaks(() => large.raw('DATA', Buffer.alloc(MAX_DATA + 1)))
    writeFileSync(guest.path('two-windows'), Buffer.alloc(2 * INITIAL_WINDOW))
    const reading = guest.request('READ', { path: guest.path('two-windows') })
    await breaks(() => reading.raw('DATA', Buffer.alloc(1)))
    const stopped = await guest.spawn(['sleep', '1000'], { id: 'stopped' })
    await breaks(() => stopped.send('END'))
    guest.request('ATTACH', { id: 'stopped', offset: 0 }).send('FORGET')
  })

  test('is closed when more than the window is sent to a port that does not read', async (t) => {
    const { createServer } = await import('node:net')
    const server = createServer((socket) => socket.pause())
    t.after(() => server.close())
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
    const { port } = server.address() as { port: number }
    const stream = guest.request('DIAL', { port })
    await stream.next('OPENED')
    await breaks(() => {
      for (let i = 0; i < 64; i++) stream.raw('DATA', Buffer.alloc(MAX_DATA))
    })
  })

  test('frames for streams that have ended are ignored', async () => {
    for (const name of ['DATA', 'END', 'RESET', 'ACK', 'STDIN', 'STDIN_END', 'FORGET', 'WINDOW'] as const) {
      guest.raw(MESSAGE[name], 4_000_000, Buffer.alloc(8))
    }
    assert.equal(await guest.ping('still'), 'still')
  })

  test('a frame may come one byte at a time', async () => {
    const frame = encodeFrame(MESSAGE.PING, 0, Buffer.from('slow'))
    for (const byte of frame) {
      guest.socket!.write(Buffer.from([byte]))
      await new Promise((done) => setImmediate(done))
    }
    guest.raw(MESSAGE.PING, 0, Buffer.from('then'))
    await until('both are answered', () => guest.pongs.at(-1) === 'then')
    assert.equal(guest.pongs.at(-2), 'slow')
  })

  test('a request of nearly a mebibyte is taken', async () => {
    const env = Array.from({ length: 900 }, (_, i) => `V${i}=${'x'.repeat(1000)}`)
    const { stdout } = await guest.run(['/usr/bin/env'], { env })
    assert.ok(stdout.toString().startsWith(`${env.join('\n')}\n`))
  })

  test('the guest stops reading from a server that sends without reading', async () => {
    const path = guest.path('big')
    writeFileSync(path, Buffer.alloc(1000))
    guest.socket!.pause()
    let unsent = 0
    // Every STAT is answered with about as many bytes; without a limit the guest would buffer all of them.
    for (let i = 0; i < 60_000; i++) guest.send('STAT', 1_000_000 + i, { path })
    await new Promise((done) => setTimeout(done, 100))
    unsent = guest.socket!.writableLength
    guest.socket!.resume()
    assert.ok(unsent > 0, 'the guest felt the pressure and stopped reading')
    assert.equal(await guest.ping('drained'), 'drained')
  })
})

describe('a bad field is answered with BAD_REQUEST and nothing else happens', () => {
  const long = `/${'x'.repeat(4095)}`
  const cases: [keyof typeof MESSAGE, Fields, string][] = [
    ['STAT', {}, 'no path'],
    ['STAT', { path: 'relative' }, 'a relative path'],
    ['STAT', { path: '' }, 'an empty path'],
    ['STAT', { path: long }, 'a path that is too long'],
    ['SPAWN', { argv: ['true'] }, 'no id'],
    ['SPAWN', { id: 'x'.repeat(65), argv: ['true'] }, 'an id that is too long'],
    ['SPAWN', { id: 'a' }, 'no argv'],
    ['SPAWN', { id: 'a', argv: ['true'], cwd: 'relative' }, 'a relative directory'],
    ['SPAWN', { id: 'a', argv: ['true'], stdin: 7 }, 'an unknown stdin'],
    ['SPAWN', { id: 'a', argv: ['true'], env: ['novalue'] }, 'an environment without a value'],
    ['SPAWN', { id: 'a', argv: ['true'], rlimit: [{ resource: 99, soft: 1, hard: 1 }] }, 'an unknown limit'],
    ['SPAWN', { id: 'a', argv: ['true'], pty: { cols: 70000, rows: 1 } }, 'a terminal that is too large'],
    ['READ', { path: '/etc/passwd', offset: Number.MAX_SAFE_INTEGER, length: 1 }, ''],
    ['DIAL', {}, 'no port'],
    ['DIAL', { port: 70000 }, 'a port out of range'],
    ['DIAL', { port: 80, host: '8.8.8.8' }, 'a host that is not loopback'],
    ['SIGNAL', { id: 'stranger' }, ''],
    ['CHMOD', { path: '/tmp' }, 'no mode'],
    ['CHMOD', { path: '/tmp', mode: 0o10000 }, 'a mode out of range'],
    ['CHOWN', { path: '/tmp' }, 'no owner'],
    ['SYMLINK', { path: '/tmp/guest-test-never' }, 'no target'],
    ['REMOVE', { path: '/', recursive: 1 }, 'the root'],
    ['REMOVE', { path: '/tmp/..', recursive: 1 }, 'a path that ends upwards'],
    ['SETUP', { file: [{ content: 'x' }] }, 'a file without a path'],
    ['MOVE', { from: '/tmp/x' }, 'no destination'],
    ['COPY', { to: '/tmp/x' }, 'no source'],
    ['WATCH', { path: 'here' }, 'a relative path'],
    ['TAR_IN', { path: 'here' }, 'a relative path'],
  ]
  for (const [name, fields, what] of cases.filter(([, , what]) => what !== '')) {
    test(`${name} with ${what}`, async () => {
      await assert.rejects(guest.ask(name, fields), (error: GuestError) => error.kind === 'BAD_REQUEST')
      assert.equal(await guest.ping(), 'ping')
    })
  }

  test('fields that are cut, of a wrong size, or hold a NUL', async () => {
    const payloads = [
      Buffer.from([1]),
      Buffer.from([1, 255, 255, 255, 255, 0]),
      Buffer.from([1, 4, 0, 0, 0, 0x2f, 0, 0x61, 0x62]),
      Buffer.concat([
        encodeFields([{ tag: 1, name: 'path', kind: 'str' }], { path: '/tmp' }),
        Buffer.from([2, 1, 0, 0, 0, 1]),
      ]),
    ]
    for (const payload of payloads) {
      const stream = guest.stream()
      stream.raw('STAT', payload)
      assert.equal((await stream.next('ERROR')).fields.kind, 1)
    }
    assert.equal(await guest.ping(), 'ping')
  })

  test('every request, given noise, is answered or closes the connection and the guest lives', async () => {
    const names = Object.entries(MESSAGE).filter(
      ([name, code]) =>
        code >= 32 &&
        code !== MESSAGE.KILL_ALL &&
        !['REMOVE', 'MOVE', 'COPY', 'WRITE', 'SETUP'].includes(name),
    )
    for (const [, code] of names) {
      const { connections } = guest
      guest.raw(code, 3_000_000 + code, randomBytes(200))
      let answered = false
      guest.ping().then(
        () => {
          answered = true
        },
        () => {},
      )
      await until('it is answered or the guest is back', () => answered || guest.connections > connections)
      await guest.connected()
    }
    assert.ok(isAlive(guest.pid))
  })

  test('an unknown field is skipped', async () => {
    const known = encodeFields([{ tag: 1, name: 'path', kind: 'str' }], { path: '/' })
    const stream = guest.stream()
    stream.raw('STAT', Buffer.concat([Buffer.from([250, 3, 0, 0, 0, 1, 2, 3]), known]))
    assert.equal((await stream.next('OK')).fields.entry[0].type, 2)
  })

  test('window limits do not fall', async () => {
    const path = guest.path('window')
    writeFileSync(path, Buffer.alloc(INITIAL_WINDOW + 10))
    const stream = guest.request('READ', { path })
    await stream.next('OPENED')
    stream.send('WINDOW', { limit: 5 })
    let received = 0
    while (received < INITIAL_WINDOW) received += (await stream.next('DATA')).raw.length
    assert.equal(received, INITIAL_WINDOW)
    stream.send('WINDOW', { limit: INITIAL_WINDOW + 10 })
    assert.equal((await stream.next('DATA')).raw.length, 10)
    await stream.next('END')
  })
})
