import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { failsWith, say } from '../support/shell.ts'
import { startSuite } from '../support/suite.ts'

const suite = await startSuite()
const { server } = suite
const sandbox = await suite.create()
const { files } = sandbox

const MIB = 1024 * 1024
const LARGE_BYTES = 200 * MIB
/** The allowed growth of the server's memory during transfers of any size. */
const RSS_GROWTH_BYTES = 150 * MIB

test('text, bytes and streams come back as they went', async () => {
  const bytes = Uint8Array.from({ length: 70_000 }, (_, index) => index % 256)
  await files.write('text', 'grüße\n\0 €')
  assert.equal(await files.read('text'), 'grüße\n\0 €')
  await files.write('bytes', bytes)
  assert.deepEqual(await files.readBytes('bytes'), bytes)
  await files.write('empty', '')
  assert.equal((await files.readBytes('empty')).length, 0)
  const pieces = (async function* () {
    for (let at = 0; at < bytes.length; at += 9999) yield bytes.subarray(at, at + 9999)
  })()
  await files.write('streamed', pieces)
  const read: Uint8Array[] = []
  for await (const piece of await files.readStream('streamed')) read.push(piece)
  assert.deepEqual(new Uint8Array(Buffer.concat(read)), bytes)
  assert.equal(await say(sandbox, 'sha256sum < streamed'), `${sha256(bytes)}  -`)
})

test('files of a command belong to the user that runs it, also where another user had one', async () => {
  await sandbox.exec.run('mkdir run && echo old > run/a && chown 0:0 run/a', { user: 'root' })
  const given = [
    { path: 'a', content: 'new' },
    { path: 'deep/b', content: 'new' },
  ]
  const show = 'stat -c %U a deep deep/b; cat a'
  const as = (user?: string) => sandbox.exec.run(show, { cwd: 'run', files: given, user })
  assert.equal((await as()).stdout, 'user\nuser\nuser\nnew')
  assert.equal((await as('root')).stdout, 'root\nuser\nroot\nnew')
  const nobody = { path: 'c', content: '', owner: 'no-such-user' }
  await failsWith(sandbox.exec.run('true', { files: [nobody] }), 'user_not_found')
})

test('200 MB go up and down intact while the memory of the server stays flat', async () => {
  const block = randomBytes(MIB)
  const hash = createHash('sha256')
  const before = rssBytes()
  let highest = 0
  const source = (async function* () {
    for (let sent = 0; sent < LARGE_BYTES; sent += MIB) {
      block.writeUInt32LE(sent, 0)
      hash.update(block)
      highest = Math.max(highest, rssBytes())
      yield Buffer.from(block)
    }
  })()
  const entry = await files.write('large', source)
  assert.equal(entry.sizeBytes, LARGE_BYTES)
  const expected = hash.digest('hex')
  assert.equal(await say(sandbox, 'sha256sum < large'), `${expected}  -`)
  const read = createHash('sha256')
  for await (const piece of await files.readStream('large')) {
    read.update(piece)
    highest = Math.max(highest, rssBytes())
  }
  assert.equal(read.digest('hex'), expected)
  assert.ok(highest - before < RSS_GROWTH_BYTES, `${before} grew to ${highest}`)
  await files.remove('large')
})

test('a client that reads slowly or goes away costs nothing', async () => {
  await say(sandbox, 'head -c 100000000 /dev/zero > slow')
  const before = rssBytes()
  const stalled = await Promise.all(Array.from({ length: 10 }, () => files.readStream('slow')))
  await sleep(500)
  assert.ok(rssBytes() - before < RSS_GROWTH_BYTES)
  await Promise.all(stalled.map((stream) => stream.cancel()))
  assert.equal(await say(sandbox, 'echo fine'), 'fine')
  await files.remove('slow')
})

test('a range gives exactly those bytes', async () => {
  await files.write('digits', '0123456789')
  assert.equal(await files.read('digits', { start: 2, end: 4 }), '234')
  assert.equal(await files.read('digits', { start: 7 }), '789')
  assert.equal(await files.read('digits', { start: -3 }), '789')
  assert.equal(await files.read('digits', { start: -30 }), '0123456789')
  assert.equal(await files.read('digits', { start: 8, end: 100 }), '89')
  await failsWith(files.read('digits', { start: 10 }), 'range_not_satisfiable')
  const response = await raw('digits', { headers: { Range: 'bytes=0-0' } })
  assert.deepEqual([response.status, response.headers.get('content-range')], [206, 'bytes 0-0/10'])
  const head = await raw('digits', { method: 'HEAD' })
  assert.deepEqual([head.status, head.headers.get('content-length')], [200, '10'])
  const known = await raw('digits', { headers: { 'If-None-Match': head.headers.get('etag')! } })
  assert.equal(known.status, 304)
})

test('readers see the old file or the new one, never a mixture', async () => {
  const size = 300_000
  await files.write('atomic', 'a'.repeat(size))
  let isOver = false
  const writer = (async () => {
    for (let n = 0; n < 30; n++) await files.write('atomic', (n % 2 ? 'a' : 'b').repeat(size))
    isOver = true
  })()
  const reader = async () => {
    while (!isOver) {
      const text = await files.read('atomic')
      assert.equal(text.length, size)
      assert.equal(text, text[0]!.repeat(size))
    }
  }
  await Promise.all([writer, reader(), reader()])
  assert.equal(await say(sandbox, 'ls -A | grep -c atomic'), '1')
})

test('an upload that breaks off leaves the old content and no other file', async () => {
  await say(sandbox, 'mkdir -p broken && echo old > broken/file')
  const { port, host } = new URL(server.url)
  const socket = connect(Number(port), '127.0.0.1')
  socket.on('error', () => {})
  const path = `/v1/sandboxes/${sandbox.id}/files?path=broken/file`
  socket.write(
    `PUT ${path} HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${server.key}\r\nContent-Length: 900000\r\n\r\n`,
  )
  socket.write('x'.repeat(300_000))
  // The API does not list a file that is still being written.
  const names = () => say(sandbox, 'ls -A broken')
  while (!/^\.islet-\w+$/m.test(await names())) await sleep(10)
  assert.equal((await files.list('broken')).length, 1)
  socket.destroy()
  while ((await names()) !== 'file') await sleep(10)
  assert.equal(await files.read('broken/file'), 'old\n')
})

test('mode and owner are as asked, as before, or the usual ones', async () => {
  const made = await files.write('owned', 'x')
  assert.deepEqual([made.mode, made.uid, made.gid], ['0644', 1000, 1000])
  const script = await files.write('script', '#!/bin/sh\necho ran\n', { mode: 0o755 })
  assert.equal(script.mode, '0755')
  assert.equal(await say(sandbox, './script'), 'ran')
  assert.equal((await files.write('script', '#!/bin/sh\necho again\n')).mode, '0755')
  const root = await files.write('/etc/e2e.conf', 'x', { owner: 'root', mode: '0600' })
  assert.deepEqual([root.uid, root.mode], [0, '0600'])
  assert.equal((await files.write('/etc/e2e.conf', 'y')).uid, 0)
  assert.equal((await files.write('numbered', '', { owner: '12:34' })).gid, 34)
  await failsWith(files.write('owned', 'y', { exclusive: true }), 'file_exists')
  await failsWith(files.write('no/parents/here', 'y', { parents: false }), 'file_not_found')
  await failsWith(files.write('owned/below', 'y'), 'not_a_directory')
  await failsWith(files.write('/etc', 'y'), 'is_a_directory')
  assert.equal((await files.write('new/parents/here', 'y')).path, '/home/user/new/parents/here')
  assert.equal(await say(sandbox, 'stat -c %U new new/parents'), 'user\nuser')
})

test('names may hold anything but a slash and NUL', async () => {
  const names = [
    'grün 漢字 🙂',
    'new\nline',
    ' -rf *',
    '"quoted\' $HOME `id`',
    '%2e%2e',
    'a+b&c=d#e?f',
    'tab\there',
  ]
  for (const name of names) await files.write(`names/${name}`, name)
  assert.deepEqual((await files.list('names')).map((entry) => entry.name).sort(), [...names].sort())
  for (const name of names) assert.equal(await files.read(`names/${name}`), name)
  for (const name of names) await files.remove(`names/${name}`)
  assert.deepEqual(await files.list('names'), [])
})

test('a name that is not UTF-8 does not break its directory', async () => {
  await say(sandbox, [
    'python3',
    '-c',
    "import os; os.mkdir('odd'); open(b'odd/\\xff\\xfe', 'w'); open('odd/fine', 'w')",
  ])
  assert.ok((await files.list('odd')).some(({ name }) => name === 'fine'))
  await files.remove('odd')
  assert.equal(await files.exists('odd'), false)
})

test('a file that grows or is endless ends where it began to be read', async () => {
  await sandbox.exec.spawn('while :; do echo line >> growing; done', { timeout: '20s' })
  while (!(await files.exists('growing'))) await sleep(10)
  for (let n = 0; n < 5; n++) assert.match(await files.read('growing'), /^(line\n)*/)
  await failsWith(files.read('/dev/zero'), 'not_a_file')
})

test('files of /proc are read whole although they say they have no size', async () => {
  assert.match(await files.read('/proc/version'), /^Linux/)
  assert.match(await files.read('/proc/self/status'), /^Name:/)
})

test('fifos, sockets, devices and directories are refused, not waited for', async () => {
  await say(sandbox, 'mkfifo pipe; ln -s pipe to-pipe')
  for (const path of ['pipe', 'to-pipe', '/dev/null']) await failsWith(files.read(path), 'not_a_file')
  await failsWith(files.read('/etc'), 'is_a_directory')
  assert.equal((await files.stat('pipe')).type, 'other')
})

test('a terminal that is not there is refused like other devices', async () => {
  await failsWith(files.read('/dev/tty'), 'not_a_file')
})

function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex')
}

function rssBytes(): number {
  const status = readFileSync(`/proc/${server.pid}/status`, 'utf8')
  return Number(/^VmRSS:\s+(\d+) kB/m.exec(status)![1]) * 1024
}

function raw(path: string, init: RequestInit): Promise<Response> {
  return server.fetch(`/v1/sandboxes/${sandbox.id}/files?path=${encodeURIComponent(path)}`, init)
}
