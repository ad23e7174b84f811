// Large files are spliced to the socket; the server cannot tell the difference.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { appendFileSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { needs } from '../../../tests/support/programs.ts'
import { type Fields, Guest, INITIAL_WINDOW, type Stream } from './harness.ts'

needs('gcc')

const MIB = 1024 * 1024
const content = randomBytes(3 * MIB + 123)

let guest: Guest
let path: string
before(async () => {
  guest = await Guest.start()
  path = guest.path('large')
  writeFileSync(path, content)
})
after(() => guest.stop())

const ranges: Fields[] = [
  {},
  { offset: 1 },
  { offset: 4095, length: MIB },
  { offset: 4096, length: 128 * 1024 + 1 },
  { offset: MIB + 77, length: 10 * MIB },
  { offset: content.length - 1 },
  { offset: content.length },
]

async function readsAsItIs(guest: Guest, path: string) {
  for (const range of ranges) {
    const { offset = 0, length = content.length } = range
    const read = await guest.readFile(path, range)
    assert.ok(read.equals(content.subarray(offset, offset + length)), JSON.stringify(range))
  }
}

test('any range of a large file comes as it is', () => readsAsItIs(guest, path))

test('a file that becomes shorter while it is read ends where it ends by then', async () => {
  for (const left of [INITIAL_WINDOW + 300_001, INITIAL_WINDOW - 1]) {
    const shrinking = guest.path('shrinking')
    writeFileSync(shrinking, content)
    const { stream, first } = await firstWindow(guest, shrinking)
    truncateSync(shrinking, left)
    stream.send('WINDOW', { limit: 10 * MIB })
    const all = Buffer.concat([first, await rest(stream)])
    assert.ok(all.equals(content.subarray(0, Math.max(left, INITIAL_WINDOW))))
  }
})

test('of a file that grows while it is read, what was added comes too', async () => {
  const growing = guest.path('growing')
  writeFileSync(growing, content)
  const { stream, first } = await firstWindow(guest, growing)
  appendFileSync(growing, content)
  stream.send('WINDOW', { limit: 10 * MIB })
  assert.ok(Buffer.concat([first, await rest(stream)]).equals(Buffer.concat([content, content])))
})

test('while the server does not read, complete frames wait in order, also those of cancelled streams', async () => {
  const kept = await stalled(guest)
  const dropped = guest.request('READ', { path: kept.path })
  dropped.send('WINDOW', { limit: 64 * MIB })
  dropped.send('RESET')
  const size = guest.ask('STAT', { path })
  const pong = guest.ping('after')
  guest.socket!.resume()
  assert.ok((await rest(kept.stream)).equals(kept.content))
  assert.equal((await size).entry[0].size, content.length)
  assert.equal(await pong, 'after')
  await readsAsItIs(guest, path)
})

test('cancelling a stream while its pages wait does not damage the next frames', async () => {
  const { stream } = await stalled(guest)
  stream.send('RESET')
  guest.socket!.resume()
  await guest.ping()
  await readsAsItIs(guest, path)
})

test('pages that wait when the connection is lost are dropped', async () => {
  await stalled(guest)
  await guest.reconnect()
  await readsAsItIs(guest, path)
})

for (const which of ['files', 'sockets']) {
  test(`where ${which} take no part, bytes are copied`, async () => {
    const wrapper = join(guest.dir, 'no-splice')
    execFileSync('gcc', ['-o', wrapper, join(import.meta.dirname, 'no-splice.c')])
    const other = await Guest.start([wrapper, which])
    try {
      await readsAsItIs(other, path)
      const { stream, content } = await stalled(other)
      const pong = other.ping('after')
      other.socket!.resume()
      assert.ok((await rest(stream)).equals(content))
      assert.equal(await pong, 'after')
    } finally {
      await other.stop()
    }
  })
}

/** Everything that may arrive before the first WINDOW. */
async function firstWindow(guest: Guest, path: string) {
  const stream = guest.request('READ', { path })
  await stream.next('OPENED')
  const pieces: Buffer[] = []
  for (let bytes = 0; bytes < INITIAL_WINDOW; bytes += pieces.at(-1)!.length)
    pieces.push((await stream.next('DATA')).raw)
  await guest.ping()
  return { stream, first: Buffer.concat(pieces) }
}

async function rest(stream: Stream): Promise<Buffer> {
  const pieces: Buffer[] = []
  for (;;) {
    const { name, raw } = await stream.next('DATA', 'END')
    if (name === 'END') return Buffer.concat(pieces)
    pieces.push(raw)
  }
}

/** A read of more than a socket holds, by a server that stopped reading. */
async function stalled(guest: Guest) {
  const path = guest.path('stalled')
  const content = randomBytes(24 * MIB)
  writeFileSync(path, content)
  const stream = guest.request('READ', { path, length: content.length })
  await stream.next('OPENED')
  guest.socket!.pause()
  await new Promise<void>((sent) => {
    stream.send('WINDOW', { limit: content.length })
    guest.socket!.write('', () => sent())
  })
  await waitsForRoom(guest.pid)
  return { stream, path, content }
}

/** Waits until the guest only waits for the socket: it sleeps and has used no CPU time for a while. */
async function waitsForRoom(pid: number) {
  const { readFileSync } = process.getBuiltinModule('node:fs')
  const { setTimeout } = process.getBuiltinModule('node:timers/promises')
  const used = () => readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ').slice(11, 13).join()
  for (let before = ''; before !== used(); ) {
    before = used()
    await setTimeout(30)
  }
}
