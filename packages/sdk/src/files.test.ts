import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import { test } from 'node:test'
import { SANDBOX, startStub } from '../test/stub.ts'
import { Client } from './client.ts'
import { hasCode, Sandbox } from './index.ts'

const ENTRY = {
  name: 'a',
  path: '/tmp/a',
  type: 'file',
  sizeBytes: 2,
  mode: '0644',
  uid: 1000,
  gid: 1000,
  modifiedAt: '2026-01-01T00:00:00.000Z',
}

test('content may be text, bytes, a blob, a stream or anything that can be iterated', async () => {
  await using stub = await startStub(() => ({ json: ENTRY }))
  const { files } = connected(stub.url)
  const bytes = new TextEncoder().encode('hi')
  const contents = [
    'hi',
    bytes,
    bytes.buffer,
    new Blob(['hi']),
    new Blob(['hi']).stream(),
    Readable.from(['h', 'i']),
  ]
  for (const content of contents) assert.equal((await files.write('/tmp/a', content)).path, '/tmp/a')
  assert.deepEqual(
    stub.asked.map(({ method, body }) => `${method} ${body}`),
    contents.map(() => 'PUT hi'),
  )
})

test('options of a write are query parameters and modes are octal', async () => {
  await using stub = await startStub(() => ({ json: ENTRY }))
  await connected(stub.url).files.write('a b&c', '', { mode: 0o755, owner: 'root', exclusive: true })
  assert.deepEqual(Object.fromEntries(stub.asked[0]!.query), {
    path: 'a b&c',
    mode: '0755',
    owner: 'root',
    exclusive: 'true',
  })
})

test('a part of a file is asked for as a range', async () => {
  await using stub = await startStub(() => ({ status: 206, body: 'xy' }))
  const { files } = connected(stub.url)
  assert.equal(await files.read('/a', { start: 2, end: 3 }), 'xy')
  await files.readBytes('/a', { start: -2 })
  await files.readBytes('/a', { start: 5 })
  assert.deepEqual(
    stub.asked.map(({ headers }) => headers.range),
    ['bytes=2-3', 'bytes=-2', 'bytes=5-'],
  )
})

test('exists is false for what is missing and throws for anything else', async () => {
  const json = (code: string) => ({ error: { code, message: code, retryable: false } })
  await using stub = await startStub((_, count) =>
    count === 1 ? { status: 404, json: json('file_not_found') } : { status: 401, json: json('unauthorized') },
  )
  const { files } = connected(stub.url)
  assert.equal(await files.exists('/a'), false)
  await assert.rejects(files.exists('/a'), (error) => hasCode(error, 'unauthorized'))
})

test('a list that had to be cut is an error unless a limit was asked for', async () => {
  await using stub = await startStub(() => ({ json: { path: '/', entries: [ENTRY], truncated: true } }))
  const { files } = connected(stub.url)
  await assert.rejects(files.list('/'), (error) => hasCode(error, 'limit_exceeded'))
  assert.equal((await files.list('/', { limit: 1 })).length, 1)
})

test('remove and copy take whole directories', async () => {
  await using stub = await startStub(({ method }) =>
    method === 'DELETE' ? { status: 204 } : { json: ENTRY },
  )
  const { files } = connected(stub.url)
  await files.remove('/a')
  await files.copy('/a', '/b')
  assert.equal(stub.asked[0]?.query.get('recursive'), 'true')
  assert.deepEqual(JSON.parse(stub.asked[1]!.body), { from: '/a', to: '/b', recursive: true })
})

test('a large upload and download stream through', async () => {
  const chunk = new Uint8Array(1024 * 1024).fill(7)
  const count = 32
  const received = createHash('sha256')
  const server = createServer((request, response) => {
    if (request.method === 'GET') return Readable.from(repeat(chunk, count)).pipe(response)
    request.on('data', (data) => received.update(data))
    request.on('end', () => response.end(JSON.stringify(ENTRY)))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  try {
    const { files } = connected(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
    const expected = createHash('sha256')
    for (let n = 0; n < count; n++) expected.update(chunk)
    const digest = expected.digest('hex')
    await files.write('/a', repeat(chunk, count))
    assert.equal(received.digest('hex'), digest)
    const read = createHash('sha256')
    for await (const part of await files.readStream('/a')) read.update(part)
    assert.equal(read.digest('hex'), digest)
  } finally {
    server.closeAllConnections()
    server.close()
  }
})

test('a download that breaks off is connection_failed', async () => {
  const server = createServer((request, response) => {
    response.writeHead(200, { 'Content-Length': '100' })
    response.write('half', () => request.socket.destroy())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  try {
    const { files } = connected(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
    const stream = await files.readStream('/a')
    await assert.rejects(new Response(stream).text(), (error) => hasCode(error, 'connection_failed'))
  } finally {
    server.close()
  }
})

async function* repeat(chunk: Uint8Array, count: number): AsyncGenerator<Uint8Array> {
  for (let n = 0; n < count; n++) yield chunk
}

function connected(url: string): Sandbox {
  return new Sandbox(new Client({ url, apiKey: 'test-key-test-key' }), { ...SANDBOX })
}
