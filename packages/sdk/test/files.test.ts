import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { after, before, test } from 'node:test'
import { LIMITS } from '@islet/contract/client'
import { startTestApi, TEST_KEY, type TestApi } from '../../server/test/support/server.ts'
import { Client } from '../src/client/client.ts'
import { hasCode, Sandbox } from '../src/index.ts'
import { startProxy } from './proxy.ts'

const apiKey = TEST_KEY
let api: TestApi
let sandbox: Sandbox
before(async () => {
  api = await startTestApi()
  sandbox = await Sandbox.create({ url: api.url, apiKey })
})
after(() => api[Symbol.asyncDispose]())

test('content may be text, bytes, a blob, a stream or anything that can be iterated', async () => {
  const { files } = sandbox
  const bytes = new TextEncoder().encode('hi')
  const contents = [
    'hi',
    bytes,
    bytes.buffer,
    new Blob(['hi']),
    new Blob(['hi']).stream(),
    Readable.from(['h', 'i']),
  ]
  for (const [index, content] of contents.entries()) {
    assert.equal((await files.write(`content-${index}`, content)).sizeBytes, 2)
    assert.equal(await files.read(`content-${index}`), 'hi')
  }
})

test('a write takes any name, a mode as a number, an owner, and may insist on being the first', async () => {
  const options = { mode: 0o751, owner: '33:44', exclusive: true }
  const { mode, uid, gid } = await sandbox.files.write('a b&c/ü', '', options)
  assert.deepEqual([mode, uid, gid], ['0751', 33, 44])
  await assert.rejects(sandbox.files.write('a b&c/ü', '', options), (error) => hasCode(error, 'file_exists'))
})

test('a part of a file is read, from its beginning or its end', async () => {
  const { files } = sandbox
  await files.write('ten', '0123456789')
  assert.equal(await files.read('ten', { start: 2, end: 3 }), '23')
  assert.equal(await files.read('ten', { end: 3 }), '0123')
  assert.equal(await files.read('ten', { start: 5 }), '56789')
  assert.equal(await files.read('ten', { start: -2 }), '89')
  await assert.rejects(files.read('ten', { start: 10 }), (error) => hasCode(error, 'range_not_satisfiable'))
})

test('a range that would be ignored is refused, and the hint says how to write it', async () => {
  const { files } = sandbox
  await files.write('ten', '0123456789')
  const combined = {
    code: 'bad_request',
    message: /negative start.*start -5 and end 8/,
    hint: /leave end out/,
  }
  for (const read of ['read', 'readBytes', 'readStream'] as const)
    await assert.rejects(files[read]('ten', { start: -5, end: 8 }), combined)
  for (const range of [{ start: 5, end: 4 }, { end: -1 }, { start: 1.5 }, { start: Number.NaN }])
    await assert.rejects(files.read('ten', range), { code: 'bad_request', hint: /whole numbers/ })
})

test('exists is false for a missing file, and throws only if the server cannot be reached', async () => {
  const { files } = sandbox
  await files.write('file', '')
  assert.deepEqual([await files.exists('file'), await files.exists('none')], [true, false])
  assert.equal(await files.exists('file/below'), false)
  const gone = await Sandbox.create({ url: api.url, apiKey })
  await gone.kill()
  assert.deepEqual([await gone.files.exists('/'), await gone.env.exists('.env')], [false, false])
  const stranger = new Sandbox(new Client({ url: api.url, apiKey: 'wrong' }), await sandbox.getInfo())
  await assert.rejects(stranger.files.exists('file'), (error) => hasCode(error, 'unauthorized'))
})

test('a list that had to be cut is an error unless a limit was asked for', async () => {
  // In memory: on a disk, creating this many takes seconds.
  const many = mkdtempSync('/dev/shm/islet-sdk-')
  try {
    for (let n = 0; n <= LIMITS.listEntries; n++) symlinkSync('x', join(many, String(n)))
    await assert.rejects(sandbox.files.list(many), (error) => hasCode(error, 'limit_exceeded'))
    assert.equal((await sandbox.files.list(many, { limit: 1 })).length, 1)
  } finally {
    rmSync(many, { recursive: true })
  }
})

test('remove and copy take whole directories', async () => {
  const { files } = sandbox
  await files.write('from/a/b', 'x')
  await files.copy('from', 'to')
  await files.remove('from')
  assert.equal(await files.read('to/a/b'), 'x')
  assert.equal(await files.exists('from'), false)
})

test('a large upload and download stream through', async () => {
  const chunk = new Uint8Array(1024 * 1024).fill(7)
  const count = 32
  const expected = createHash('sha256')
  for (let n = 0; n < count; n++) expected.update(chunk)
  await sandbox.files.write('large', repeat(chunk, count))
  const read = createHash('sha256')
  for await (const part of await sandbox.files.readStream('large')) read.update(part)
  assert.equal(read.digest('hex'), expected.digest('hex'))
})

test('a download that breaks off is connection_failed', async () => {
  await using proxy = await startProxy(api.url, () => ({ cut: 'body', afterBytes: 1000 }))
  await sandbox.files.write('whole', 'x'.repeat(100_000))
  const there = new Sandbox(new Client({ url: proxy.url, apiKey }), await sandbox.getInfo())
  const stream = await there.files.readStream('whole')
  await assert.rejects(new Response(stream).text(), (error) => hasCode(error, 'connection_failed'))
})

test('a directory goes out and in again as an archive', async () => {
  const { files } = sandbox
  await files.write('packed/a/b', 'x')
  const { count } = await files.writeArchive('unpacked', await files.readArchive('packed'))
  assert.ok(count >= 2)
  assert.equal(await files.read('unpacked/a/b'), 'x')
})

async function* repeat(chunk: Uint8Array, count: number): AsyncGenerator<Uint8Array> {
  for (let n = 0; n < count; n++) yield chunk
}

test('a batch writes text and bytes and deletes, and each operation has its own result', async () => {
  const { files } = sandbox
  const bytes = Uint8Array.from({ length: 100_000 }, (_, index) => index % 256)
  const results = await files.batchWrite([
    { path: 'batch/text', operation: 'write', content: 'grüße', mode: 0o600 },
    { path: 'batch/bytes', operation: 'write', content: bytes },
    { path: 'batch/none', operation: 'delete' },
  ])
  assert.deepEqual(
    results.map(({ path, success, code }) => [path, success, code]),
    [
      ['batch/bytes', true, undefined],
      ['batch/none', false, 'file_not_found'],
      ['batch/text', true, undefined],
    ],
  )
  assert.equal(results[2]!.file?.mode, '0600')
  assert.equal(await files.read('batch/text'), 'grüße')
  assert.deepEqual(await files.readBytes('batch/bytes'), bytes)
  const empty = files.batchWrite([{ path: 'x', operation: 'write' }])
  await assert.rejects(
    empty,
    (error) => hasCode(error, 'bad_request') && error.message.startsWith('files[0]'),
  )
})

test('signed URLs download and upload without a key', async () => {
  const { files } = sandbox
  const upload = await files.uploadUrl('signed/file', { expiresIn: '5m' })
  assert.equal((await fetch(upload, { method: 'PUT', body: 'by URL' })).status, 200)
  assert.equal(await (await fetch(await files.downloadUrl('signed/file'))).text(), 'by URL')
  assert.equal((await fetch(upload)).status, 403)
})

test('errors name the path, and whether something exists is never an error', async () => {
  const { files } = sandbox
  const { workdir } = await sandbox.getInfo()
  for (const verb of ['read', 'list', 'remove', 'stat'] as const) {
    await assert.rejects(files[verb]('none'), (error) => {
      return hasCode(error, 'file_not_found') && error.message.includes(`${workdir}/none`)
    })
  }
  symlinkSync('round', join(workdir, 'round'))
  for (const path of ['', 'none', 'round/x', 'a\0b', 'n'.repeat(300), 'd/'.repeat(4000), 'signed/file/x']) {
    assert.equal(await files.exists(path), false, JSON.stringify(path.slice(0, 20)))
  }
  for (const path of ['round', '/', 'signed', 'signed/file'])
    assert.equal(await files.exists(path), true, path)
})
