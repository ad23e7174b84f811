// The link and the real guest, started as a plain child of the test.
import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { chmod, mkdir, readdir, readFile, stat, symlink, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { WatchEvent } from './guest.ts'
import type { Link } from './link.ts'
import { Collector, openGuest, openLink, RawGuest, rejection, spec, startGuest } from './testing.ts'

async function run(link: Link, argv: string[], more = {}) {
  const sink = new Collector()
  const process = await link.spawn(spec(argv, more), sink)
  const exit = await process.exited
  process.forget()
  return { ...exit, stdout: sink.stdout, stderr: sink.stderr }
}

async function* chunks(...parts: (string | Uint8Array)[]): AsyncGenerator<Uint8Array> {
  for (const part of parts) yield typeof part === 'string' ? Buffer.from(part) : part
}

async function collect(body: AsyncIterable<Buffer>): Promise<Buffer> {
  const parts: Buffer[] = []
  for await (const part of body) parts.push(part)
  return Buffer.concat(parts)
}

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

test('what never ran is an error that says why', async (t) => {
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

test('files are written, read, changed and removed', async (t) => {
  const { link, directory } = await openGuest(t)
  const path = join(directory, 'deep/er/file')
  const entry = await link.write(path, chunks('hello ', 'world'), { parents: true, mode: 0o600 })
  assert.deepEqual([entry.type, entry.sizeBytes, entry.mode], ['file', 11, 0o600])
  const read = await link.read(path)
  assert.equal(String(await collect(read.body)), 'hello world')
  assert.equal(read.entry.sizeBytes, 11)
  assert.equal(String(await collect((await link.read(path, { offset: 3, length: 5 })).body)), 'lo wo')
  await link.chmod(path, 0o640)
  assert.equal((await link.stat(path)).mode, 0o640)
  await link.symlink(join(directory, 'link'), 'deep/er/file')
  assert.equal((await link.stat(join(directory, 'link'))).type, 'file')
  const itself = await link.stat(join(directory, 'link'), { follow: false })
  assert.deepEqual([itself.type, itself.target], ['symlink', 'deep/er/file'])
  assert.equal(await link.realpath(join(directory, 'link')), path)
  await link.copy(join(directory, 'deep'), join(directory, 'copy'), { recursive: true })
  await link.move(join(directory, 'copy/er/file'), join(directory, 'moved'))
  assert.equal(await readFile(join(directory, 'moved'), 'utf8'), 'hello world')
  await link.mkdir(join(directory, 'a/b'), { parents: true })
  const { entries, truncated } = await link.list(directory, { depth: 9 })
  const paths = entries.map((found) => found.path).filter((found) => !found.includes('sock'))
  assert.deepEqual(paths.sort(), [
    'a',
    'a/b',
    'copy',
    'copy/er',
    'deep',
    'deep/er',
    'deep/er/file',
    'link',
    'moved',
  ])
  assert.equal(truncated, false)
  assert.equal((await link.list(directory, { depth: 9, limit: 2 })).truncated, true)
  await link.remove(join(directory, 'deep'), { recursive: true })
  assert.equal((await rejection(link.stat(path))).code, 'file_not_found')
})

test('what files refuse has its own code each', async (t) => {
  const { link, directory } = await openGuest(t)
  await mkdir(join(directory, 'full/inside'), { recursive: true })
  await writeFile(join(directory, 'file'), 'x')
  const file = join(directory, 'file')
  const full = join(directory, 'full')
  const failures: [string, () => Promise<unknown>][] = [
    ['file_not_found', () => link.read(join(directory, 'none'))],
    ['is_a_directory', () => link.read(full)],
    ['not_a_file', () => link.read('/dev/null')],
    ['file_exists', () => link.write(file, chunks('y'), { exclusive: true })],
    ['is_a_directory', () => link.write(full, chunks('y'))],
    ['not_a_directory', () => link.mkdir(join(file, 'x'))],
    ['file_exists', () => link.mkdir(full)],
    ['directory_not_empty', () => link.remove(full)],
    ['file_exists', () => link.move(file, full)],
    ['file_not_found', () => link.tarOut(join(directory, 'none')).then(collect)],
    ['invalid_path', () => link.stat('relative')],
    ['invalid_path', () => link.stat('/nul\0')],
    ['invalid_path', () => link.stat(`/${'x'.repeat(5000)}`)],
    ['bad_request', () => link.chmod(file, -1)],
  ]
  for (const [code, attempt] of failures) {
    const error = await rejection(attempt())
    assert.equal(error.code, code, error.message)
  }
  assert.equal(await readFile(file, 'utf8'), 'x')
})

test('64 MB go up and come down unchanged, in chunks of any size', async (t) => {
  const { link, directory } = await openGuest(t)
  const path = join(directory, 'large')
  const block = randomBytes(1_000_003)
  const sent = createHash('sha256')
  async function* body(): AsyncGenerator<Uint8Array> {
    for (let i = 0; i < 64; i++) {
      sent.update(block)
      yield block
    }
  }
  const entry = await link.write(path, body())
  assert.equal(entry.sizeBytes, 64 * block.length)
  const received = createHash('sha256')
  for await (const piece of (await link.read(path)).body) received.update(piece)
  assert.equal(received.digest('hex'), sent.digest('hex'))
})

test('a write that is aborted, or whose body fails, leaves nothing behind', async (t) => {
  const { link, directory } = await openGuest(t)
  const path = join(directory, 'file')
  await writeFile(path, 'before')
  const abort = new AbortController()
  async function* stalled(): AsyncGenerator<Uint8Array> {
    yield Buffer.from('half')
    abort.abort()
    await sleep(1)
    yield Buffer.from('more')
  }
  assert.equal((await rejection(link.write(path, stalled(), { signal: abort.signal }))).name, 'AbortError')
  async function* broken(): AsyncGenerator<Uint8Array> {
    yield Buffer.from('half')
    throw new Error('the client went away')
  }
  assert.equal((await rejection(link.write(path, broken()))).message, 'the client went away')
  await link.ping()
  assert.equal(await readFile(path, 'utf8'), 'before')
  assert.deepEqual((await readdir(directory)).sort(), ['file', 'link.sock'])
})

test('a reader that leaves or aborts ends the transfer', async (t) => {
  const { link, directory } = await openGuest(t)
  await writeFile(join(directory, 'large'), Buffer.alloc(8_000_000))
  for await (const _piece of (await link.read(join(directory, 'large'))).body) break
  const abort = new AbortController()
  const { body } = await link.read(join(directory, 'large'), { signal: abort.signal })
  abort.abort()
  assert.equal((await rejection(collect(body))).name, 'AbortError')
  const already = link.list('/', { signal: AbortSignal.abort() })
  assert.equal((await rejection(already)).name, 'AbortError')
  await link.ping()
  assert.equal(link.connected, true)
})

test('a tree goes out as a tar and comes in again', async (t) => {
  const { link, directory } = await openGuest(t)
  await mkdir(join(directory, 'tree/empty'), { recursive: true })
  await writeFile(join(directory, 'tree/run'), '#!/bin/sh\n')
  await chmod(join(directory, 'tree/run'), 0o755)
  await symlink('run', join(directory, 'tree/also'))
  await mkdir(join(directory, 'copy'))
  const { count } = await link.tarIn(join(directory, 'copy'), await link.tarOut(join(directory, 'tree')))
  assert.ok(count >= 3)
  assert.deepEqual((await readdir(join(directory, 'copy'))).sort(), ['also', 'empty', 'run'])
  assert.equal((await stat(join(directory, 'copy/run'))).mode & 0o777, 0o755)
})

test('changes below a path are reported until the watcher leaves', async (t) => {
  const { link, directory } = await openGuest(t)
  const abort = new AbortController()
  const events = await link.watch(directory, { recursive: true, signal: abort.signal })
  const seen: WatchEvent[] = []
  await mkdir(join(directory, 'new'))
  await writeFile(join(directory, 'new/file'), 'x')
  for await (const event of events) {
    seen.push(event)
    if (event.path === join(directory, 'new/file')) break
  }
  assert.deepEqual(seen[0], { kind: 'created', path: join(directory, 'new'), directory: true })
  const more = await link.watch(directory, { recursive: true, signal: abort.signal })
  abort.abort()
  assert.equal((await rejection(more[Symbol.asyncIterator]().next())).name, 'AbortError')
  assert.equal((await rejection(link.watch('/no/such', { recursive: true }))).code, 'file_not_found')
})

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

test('a dial that is destroyed or aborted is given up', async (t) => {
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

test('setup writes files in place of what was there', async (t) => {
  const { link, directory } = await openGuest(t)
  await symlink('/etc/passwd', join(directory, 'hosts'))
  const large = 'x'.repeat(700_000)
  await link.setup([
    { path: join(directory, 'hosts'), content: '127.0.0.1 localhost\n', mode: 0o644 },
    { path: join(directory, 'one'), content: large, mode: 0o600 },
    { path: join(directory, 'two'), content: Buffer.from(large), mode: 0o600 },
  ])
  assert.equal(await readFile(join(directory, 'hosts'), 'utf8'), '127.0.0.1 localhost\n')
  assert.equal((await stat(join(directory, 'two'))).size, 700_000)
  const files = [{ path: '/x', content: 'x'.repeat(2_000_000), mode: 0o644 }]
  assert.equal((await rejection(link.setup(files))).code, 'bad_request')
})

test('requests at once are bounded, one after the other are not, and processes do not count', async (t) => {
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

test('a link that is told that the sandbox is gone says so to everybody', async (t) => {
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
