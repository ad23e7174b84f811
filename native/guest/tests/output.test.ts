import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import {
  collect,
  type Fields,
  Guest,
  type GuestError,
  OUTPUT_BUFFER,
  parseOutput,
  rssKib,
  SANITIZED,
  STDIN_BUFFER,
  type Stream,
  sleep,
  stdinFrame,
  until,
} from './harness.ts'

const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex')

/** Whole numbers below max, the same ones for the same seed. */
function dice(seed: number) {
  let state = seed >>> 0
  return (max: number) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return Math.floor((state / 2 ** 32) * max)
  }
}

/** Attaches again; returns the stream and what the guest says about the process. */
async function attach(guest: Guest, id: string, offset: number): Promise<{ stream: Stream; record: Fields }> {
  const stream = guest.request('ATTACH', { id, offset })
  const { fields } = await stream.next('ATTACHED')
  return { stream, record: fields.process }
}

let guest: Guest
before(async () => {
  guest = await Guest.start()
})
after(() => guest.stop())

describe('output', () => {
  test('a reader that stalls stalls the program, costs little, and loses nothing', async () => {
    const megabytes = 100
    const before = rssKib(guest.pid)
    const line = '0123456789abcde\n'
    const stream = await guest.spawn(['sh', '-c', `yes 0123456789abcde | head -c ${megabytes << 20}`])
    let received = 0
    const hash = createHash('sha256')
    const take = async () => {
      const { offset, bytes } = parseOutput(await stream.next('OUTPUT'))
      assert.equal(offset, received)
      received += bytes.length
      hash.update(bytes)
    }
    while (received < OUTPUT_BUFFER) await take()
    // Nothing more may come: the guest holds what is not acknowledged, and the program waits in its write.
    await guest.ping()
    await sleep(50)
    await guest.ping()
    assert.equal(stream.queue.length, 0)
    assert.equal(received, OUTPUT_BUFFER)
    if (!SANITIZED) assert.ok(rssKib(guest.pid) - before < 2048, `${rssKib(guest.pid)} KiB after ${before}`)
    stream.send('ACK', { offset: received })
    while (received < megabytes << 20) {
      await take()
      stream.send('ACK', { offset: received })
    }
    assert.equal((await stream.next('EXITED')).fields.outputEnd, megabytes << 20)
    stream.send('FORGET')
    const expected = createHash('sha256')
    const block = Buffer.from(line.repeat(65536))
    for (let i = 0; i < megabytes; i++) expected.update(block)
    assert.equal(hash.digest('hex'), expected.digest('hex'))
  })

  test('a stalled socket blocks all output and loses nothing', async () => {
    const before = rssKib(guest.pid)
    const streams = await Promise.all(
      Array.from({ length: 8 }, () => guest.spawn(['sh', '-c', 'yes | head -c 400000; echo end'])),
    )
    guest.socket!.pause()
    await sleep(100)
    if (!SANITIZED)
      assert.ok(rssKib(guest.pid) - before < 8 * 300 + 3072, `${rssKib(guest.pid)} KiB after ${before}`)
    guest.socket!.resume()
    for (const { stdout } of await Promise.all(streams.map(collect))) {
      assert.equal(stdout.length, 400_004)
      assert.equal(stdout.subarray(400_000).toString(), 'end\n')
    }
  })

  test('memory for output is given back once it is read', async () => {
    if (SANITIZED) return
    await guest.sh('head -c 5000000 /dev/zero')
    await until('the guest is small again', () => rssKib(guest.pid) < 1600)
  })

  test('one busy stream does not starve another', async () => {
    const busy = await guest.spawn(['sh', '-c', 'yes | head -c 50000000'])
    const done = collect(busy)
    for (let i = 0; i < 20; i++) assert.equal((await guest.run(['/bin/true'])).code, 0)
    assert.equal((await done).stdout.length, 50_000_000)
  })

  test('nothing is lost or doubled when the connection breaks again and again', async () => {
    const seed = Date.now() >>> 0
    const random = dice(seed)
    const { id } = await guest.spawn(['sh', '-c', 'seq 1 120000; seq 1 20000 >&2'], { id: 'breaks' })
    let offset = 0
    let breaks = 0
    let out = ''
    let err = ''
    await guest.reconnect()
    let { stream } = await attach(guest, id, 0)
    let fuse = random(200_000)
    for (;;) {
      const message = await stream.next('OUTPUT', 'EXITED', 'STDIN_WINDOW')
      if (message.name === 'EXITED') break
      if (message.name === 'STDIN_WINDOW') continue
      const output = parseOutput(message)
      assert.equal(output.offset, offset, `seed ${seed}`)
      offset += output.bytes.length
      if (output.channel === 1) out += output.bytes
      else err += output.bytes
      if (random(3) > 0) stream.send('ACK', { offset })
      fuse -= output.bytes.length
      if (fuse < 0 && breaks < 8) {
        breaks++
        fuse = random(150_000)
        await guest.reconnect()
        stream = (await attach(guest, id, offset)).stream
      } else if (stream.queue.length === 0) stream.send('ACK', { offset })
    }
    stream.send('FORGET')
    const numbers = (n: number) => Array.from({ length: n }, (_, i) => `${i + 1}\n`).join('')
    assert.equal(sha256(Buffer.from(out)), sha256(Buffer.from(numbers(120_000))), `seed ${seed}`)
    assert.equal(sha256(Buffer.from(err)), sha256(Buffer.from(numbers(20_000))), `seed ${seed}`)
    assert.ok(breaks > 0)
  })

  test('a result is kept across connections until it is forgotten', async () => {
    const { id } = await guest.spawn(['sh', '-c', 'echo kept; exit 7'], { id: 'kept' })
    await guest.reconnect()
    await until('it has ended', async () => (await guest.ask('PROCESSES')).process[0].running === 0)
    for (let i = 0; i < 3; i++) {
      const { stream, record } = await attach(guest, id, 0)
      assert.deepEqual([record.id, record.outputStart], ['kept', 0])
      const output = await stream.next('OUTPUT', 'STDIN_WINDOW')
      const text = output.name === 'OUTPUT' ? output : await stream.next('OUTPUT')
      assert.equal(parseOutput(text).bytes.toString(), 'kept\n')
      assert.equal((await stream.next('EXITED')).fields.code, 7)
      if (i < 2) await guest.reconnect()
      else stream.send('FORGET')
    }
    assert.deepEqual((await guest.ask('PROCESSES')).process, [])
  })

  test('attaching takes the process over, and a reset lets it go on', async () => {
    const first = await guest.spawn(['cat'], { stdin: 1 })
    const { stream } = await attach(guest, first.id, 0)
    await stream.next('STDIN_WINDOW')
    stream.raw('STDIN', stdinFrame(0, 'to the second'))
    assert.equal(parseOutput(await stream.next('OUTPUT')).bytes.toString(), 'to the second')
    assert.equal(first.queue.length, 0)
    stream.send('RESET')
    const third = await attach(guest, first.id, 0)
    await third.stream.next('STDIN_WINDOW')
    assert.equal(parseOutput(await third.stream.next('OUTPUT')).bytes.toString(), 'to the second')
    third.stream.send('STDIN_END')
    assert.equal((await third.stream.next('EXITED')).fields.code, 0)
    third.stream.send('FORGET')
  })

  test('output that is no longer kept cannot be asked for', async () => {
    const stream = await guest.spawn(['sh', '-c', 'printf 12345; exec cat'], { stdin: 1 })
    await stream.next('OUTPUT')
    stream.send('ACK', { offset: 3 })
    for (const offset of [2, 6]) {
      await assert.rejects(
        attach(guest, stream.id, offset),
        (error: GuestError) => error.kind === 'BAD_REQUEST',
      )
    }
    await assert.rejects(attach(guest, 'nobody', 0), (error: GuestError) => error.kind === 'NO_PROCESS')
    const again = await attach(guest, stream.id, 3)
    assert.deepEqual([again.record.outputStart, again.record.outputEnd], [3, 5])
    again.stream.send('FORGET')
  })
})

describe('stdin', () => {
  async function send(stream: Stream, content: Buffer, from = 0, limit = STDIN_BUFFER) {
    for (let at = from; at < content.length; ) {
      const end = Math.min(content.length, at + 50_000, limit)
      if (end === at) {
        const message = await stream.next('STDIN_WINDOW', 'OUTPUT')
        if (message.name === 'STDIN_WINDOW') limit = message.fields.limit
      } else stream.raw('STDIN', stdinFrame(at, content.subarray(at, end)))
      at = end
    }
  }

  test('any bytes go through unchanged', async () => {
    const content = randomBytes(5_000_000)
    const stream = await guest.spawn(['sha256sum'], { stdin: 1 })
    await send(stream, content)
    stream.send('STDIN_END')
    assert.equal((await collect(stream)).stdout.toString().slice(0, 64), sha256(content))
  })

  test('a program that does not read holds up its own stdin only', async () => {
    const content = randomBytes(1_000_000)
    await guest.sh(`mkfifo ${guest.path('go')}`)
    const stream = await guest.spawn(['sh', '-c', 'read go < "$0"; sha256sum', guest.path('go')], {
      stdin: 1,
    })
    let done = false
    const sent = send(stream, content).then(() => {
      done = true
    })
    for (let i = 0; i < 5; i++) await guest.run(['true'])
    assert.equal(done, false)
    const records = (await guest.ask('PROCESSES')).process
    assert.ok(records[0].stdinOffset <= STDIN_BUFFER + 65536)
    await guest.sh(`echo go > ${guest.path('go')}`)
    await sent
    stream.send('STDIN_END')
    assert.equal((await collect(stream)).stdout.toString().slice(0, 64), sha256(content))
  })

  test('more than the window breaks the connection', async () => {
    const stream = await guest.spawn(['sleep', '1000'], { stdin: 1, id: 'greedy' })
    const closed = guest.closed()
    for (let at = 0; at < STDIN_BUFFER * 2; at += 65536)
      stream.raw('STDIN', stdinFrame(at, Buffer.alloc(65536)))
    await closed
    await guest.connected()
    ;(await attach(guest, 'greedy', 0)).stream.send('FORGET')
  })

  test('stdin for a program that closed it is discarded', async () => {
    const content = Buffer.alloc(600_000)
    const stream = await guest.spawn(['sh', '-c', 'exec <&-; sleep 0.2; echo fine'], { stdin: 1 })
    await send(stream, content)
    stream.send('STDIN_END')
    const { code, stdout } = await collect(stream)
    assert.deepEqual([code, stdout.toString()], [0, 'fine\n'])
  })

  test('without a pipe stdin is empty', async () => {
    assert.equal((await guest.sh('wc -c')).stdout.toString().trim(), '0')
    assert.equal((await guest.sh('readlink /proc/self/fd/0')).stdout.toString(), '/dev/null\n')
  })

  test('bytes that were sent twice arrive once, and a gap ends stdin', async () => {
    const stream = await guest.spawn(['cat'], { stdin: 1 })
    stream.raw('STDIN', stdinFrame(0, 'abc'))
    stream.raw('STDIN', stdinFrame(0, 'abcdef'))
    stream.raw('STDIN', stdinFrame(2, 'cd'))
    stream.send('STDIN_END')
    assert.equal((await collect(stream)).stdout.toString(), 'abcdef')
    const gap = await guest.spawn(['cat'], { stdin: 1 })
    gap.raw('STDIN', stdinFrame(1, 'x'))
    await assert.rejects(gap.next('OUTPUT'), (error: GuestError) => error.kind === 'BAD_REQUEST')
    const { stream: again } = await attach(guest, gap.id, 0)
    assert.equal((await collect(again)).code, 0) // cat saw the end of its stdin
  })

  test('stdin goes on where it was when the connection breaks', async () => {
    const seed = Date.now() >>> 0
    const random = dice(seed)
    const content = randomBytes(1_500_000)
    const { id } = await guest.spawn(['sha256sum'], { stdin: 1, id: 'stdin-breaks' })
    let at = 0
    let output: { stream: Stream; record: Fields }
    for (let breaks = 0; breaks <= 6; breaks++) {
      await guest.reconnect()
      output = await attach(guest, id, 0)
      at = output.record.stdinOffset
      const limit = (await output.stream.next('STDIN_WINDOW')).fields.limit
      const end = breaks === 6 ? content.length : Math.min(content.length, at + random(400_000))
      await send(output.stream, content.subarray(0, end), at, limit)
    }
    output!.stream.send('STDIN_END')
    assert.equal(
      (await collect(output!.stream)).stdout.toString().slice(0, 64),
      sha256(content),
      `seed ${seed}`,
    )
  })
})
