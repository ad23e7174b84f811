// Processes through the link, in the real guest.
import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Collector, openGuest, openLink, rejection, run, spec } from '../testing.ts'

test('a command runs, its output and its exit arrive', async (t) => {
  const { link } = await openGuest(t)
  const result = await run(link, ['sh', '-c', 'echo out; echo err >&2; exit 3'])
  assert.deepEqual([result.stdout, result.stderr, result.code, result.signal], ['out\n', 'err\n', 3, 0])
  assert.equal(result.outputEnd, 8)
  const killed = await run(link, ['sh', '-c', 'kill -9 $$'])
  assert.equal(killed.signal, 9)
  const late = await run(link, ['sleep', '100'], { timeoutMs: 20 })
  assert.equal(late.timedOut, true)
})

test('environment, working directory and arguments arrive as they are', async (t) => {
  const { link, directory } = await openGuest(t)
  const env = { PATH: '/usr/bin:/bin', ISLET: 'ä b\n"c"' }
  const result = await run(link, ['sh', '-c', 'pwd; printf "%s|" "$ISLET" "$@"', 'sh', '', "a'b", '*'], {
    env,
    cwd: directory,
  })
  assert.equal(Buffer.from(result.stdout, 'latin1').toString(), `${directory}\n${env.ISLET}||a'b|*|`)
})

test('a command that never ran is an error that says why', async (t) => {
  const { link } = await openGuest(t)
  const failures: [string, () => Promise<unknown>][] = [
    ['command_not_found', () => run(link, ['no-such-command'])],
    ['command_not_found', () => run(link, ['/no/such/command'])],
    ['command_not_executable', () => run(link, ['/etc/passwd'])],
    ['cwd_not_found', () => run(link, ['true'], { cwd: '/no/such/directory' })],
    ['not_a_directory', () => run(link, ['true'], { cwd: '/etc/passwd' })],
    ['user_not_found', () => run(link, ['true'], { user: 'nobody-here' })],
    ['bad_request', () => run(link, [])],
    ['bad_request', () => run(link, ['a\0b'])],
    ['bad_request', () => run(link, ['true'], { env: { 'A=B': 'c' } })],
    ['bad_request', () => run(link, ['true', 'x'.repeat(2_000_000)])],
    ['bad_request', () => run(link, ['true', 'x'.repeat(900_000)])],
    ['invalid_path', () => run(link, ['true'], { cwd: 'relative' })],
  ]
  for (const [code, attempt] of failures) {
    const error = await rejection(attempt())
    assert.equal(error.code, code, error.message)
    assert.ok(error.message.length < 500)
  }
  assert.deepEqual(await link.processes(), [])
})

test('the memory of output is freed once the sink has it', async (t) => {
  const { link } = await openGuest(t)
  const large: Buffer[] = []
  const bytes = 8 * 1024 * 1024
  const sink = {
    // Small chunks are left to the collector.
    write: (_channel: string, view: Buffer) => {
      if (view.buffer.byteLength >= 16 * 1024) large.push(view)
    },
  }
  const process = await link.spawn(spec(['head', '-c', `${bytes}`, '/dev/zero']), sink)
  const { outputEnd } = await process.exited
  process.forget()
  assert.equal(outputEnd, bytes)
  // The first and the last chunk hold other messages too.
  const held = new Set(large.map(({ buffer }) => buffer).filter(({ byteLength }) => byteLength > 0))
  assert.ok(held.size <= 2, `${held.size} of ${large.length} chunks`)
})

test('stdin goes in until it ends, and more than the guest holds waits for the program', async (t) => {
  const { link } = await openGuest(t)
  const sink = new Collector()
  const process = await link.spawn(spec(['sh', '-c', 'sleep 0.05; sha256sum'], { stdin: true }), sink)
  const data = randomBytes(3_000_000)
  for (let at = 0; at < data.length; at += 700_000) await process.writeStdin(data.subarray(at, at + 700_000))
  await process.endStdin()
  assert.equal((await process.exited).code, 0)
  assert.ok(sink.stdout.startsWith(createHash('sha256').update(data).digest('hex')))
  await process.writeStdin(Buffer.from('after the end'))
  process.forget()
  const without = await link.spawn(spec(['true']), new Collector())
  assert.equal((await rejection(without.writeStdin(Buffer.from('x')))).code, 'bad_request')
  await without.exited
  without.forget()
})

test('stdin to a program that has closed it does not hang', async (t) => {
  const { link } = await openGuest(t)
  const process = await link.spawn(
    spec(['sh', '-c', 'exec <&-; sleep 0.3'], { stdin: true }),
    new Collector(),
  )
  for (let i = 0; i < 8; i++) await process.writeStdin(Buffer.alloc(100_000))
  await process.exited
  process.forget()
})

test('a terminal has its size, and can be resized', async (t) => {
  const { link } = await openGuest(t)
  const sink = new Collector()
  const request = spec(['sh', '-c', 'stty size; read line; stty size; echo "$line"'], {
    pty: { cols: 100, rows: 30 },
  })
  const process = await link.spawn(request, sink)
  while (!sink.stdout.includes('30 100')) await sleep(1)
  await link.resize(process.id, { cols: 90, rows: 20 })
  await process.writeStdin(Buffer.from('typed\n'))
  assert.equal((await process.exited).code, 0)
  process.forget()
  assert.match(sink.stdout, /20 90\r\ntyped/)
})

test('a signal reaches the process or its whole group', async (t) => {
  const { link } = await openGuest(t)
  const process = await link.spawn(spec(['sh', '-c', 'sleep 100 & wait']), new Collector())
  await link.signal(process.id, 15, { group: true })
  assert.equal((await process.exited).signal, 15)
  assert.equal((await rejection(link.signal('prc-none', 15, { group: true }))).code, 'process_not_found')
  process.forget()
})

test('a sink that stalls stalls its program and nothing else, and loses nothing', async (t) => {
  const { link } = await openGuest(t)
  const gate = Promise.withResolvers<void>()
  let bytes = 0
  const stalled = await link.spawn(spec(['sh', '-c', 'yes | head -c 5000000']), {
    write(_channel, piece) {
      bytes += piece.length
      return gate.promise
    },
  })
  assert.equal((await run(link, ['echo', 'meanwhile'])).stdout, 'meanwhile\n')
  const [state] = await link.processes()
  assert.ok(state!.outputEnd - state!.outputStart <= 262_144)
  gate.resolve()
  assert.equal((await stalled.exited).outputEnd, 5_000_000)
  assert.equal(bytes, 5_000_000)
  stalled.forget()
})

test('a sink that fails fails its process and leaves it to the next reader', async (t) => {
  const { link } = await openGuest(t)
  const first = await link.spawn(spec(['sh', '-c', 'echo one; sleep 0.05; echo two']), {
    write() {
      throw new Error('the disk is full')
    },
  })
  assert.equal((await rejection(first.exited)).message, 'the disk is full')
  const sink = new Collector()
  const second = await link.attach(first.id, 0, sink)
  assert.equal((await second.exited).code, 0)
  assert.equal(sink.stdout, 'one\ntwo\n')
  second.forget()
})

test('another link takes the processes over where the first one was', async (t) => {
  const { link, socketPath } = await openGuest(t)
  const program = 'echo one; read a; echo $a; read b; echo $b'
  const process = await link.spawn(spec(['sh', '-c', program], { stdin: true }), new Collector())
  await process.writeStdin(Buffer.from('first\n'))
  while ((await link.processes())[0]!.outputStart < 10) await sleep(1)
  await link.close()
  assert.equal((await rejection(process.exited)).code, 'sandbox_lost')
  const next = await openLink(t, { socketPath })
  await next.link.ready({ timeoutMs: 5000 })
  const [state] = await next.link.processes()
  const sink = new Collector()
  sink.end = state!.outputEnd
  const again = await next.link.attach(process.id, state!.outputEnd, sink)
  await again.writeStdin(Buffer.from('second\n'))
  await again.endStdin()
  assert.equal((await again.exited).code, 0)
  assert.equal(sink.stdout, 'second\n')
  again.forget()
})
