// Files, archives and watching through the link, in the real guest.
import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { chmod, mkdir, readdir, readFile, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { WatchEvent } from '../guest.ts'
import { openGuest, rejection } from '../testing.ts'

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

test('each refused file operation has its own error code', async (t) => {
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

test('downloads beside each other and beside what others keep come down unchanged', async (t) => {
  const { link, directory } = await openGuest(t)
  const blocks = [randomBytes(3_000_017), randomBytes(2_000_003), randomBytes(5_000_011)]
  const paths = blocks.map((_, i) => join(directory, String(i)))
  await Promise.all(blocks.map((block, i) => writeFile(paths[i]!, block)))
  const read = async (path: string): Promise<Buffer> => {
    const { body } = await link.read(path)
    const copies: Buffer[] = []
    for await (const piece of body) {
      copies.push(Buffer.from(piece))
      body.release?.(piece) // as the sender of an answer does
    }
    return Buffer.concat(copies)
  }
  const keep = async (path: string): Promise<Buffer> => {
    const pieces: Buffer[] = []
    for await (const piece of (await link.read(path)).body) pieces.push(piece)
    return Buffer.concat(pieces)
  }
  for (let round = 0; round < 5; round++) {
    const all = await Promise.all([...paths.map(read), ...paths.map(keep)])
    assert.ok(all.every((content, i) => content.equals(blocks[i % blocks.length]!)))
  }
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

async function* chunks(...parts: (string | Uint8Array)[]): AsyncGenerator<Uint8Array> {
  for (const part of parts) yield typeof part === 'string' ? Buffer.from(part) : part
}

async function collect(body: AsyncIterable<Buffer>): Promise<Buffer> {
  const parts: Buffer[] = []
  for await (const part of body) parts.push(part)
  return Buffer.concat(parts)
}
