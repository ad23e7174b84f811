import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { test } from 'node:test'
import { free, releasing, share, useUp } from './chunks.ts'

const BYTES = 64 * 1024

test('a chunk is freed once it is written, and not when its write failed', async () => {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  const accepted = once(server, 'connection') as Promise<[Socket]>
  const socket = connect(port, '127.0.0.1')
  const [reader] = await accepted
  try {
    const first = Buffer.alloc(BYTES)
    await new Promise<void>((left) => {
      const release = releasing({ release: free } as never, first)
      socket.write(first, (error) => {
        release?.(error)
        left()
      })
    })
    assert.equal(first.length, 0)
    // Nobody reads: some of these wait in the socket when it is destroyed.
    const broken: { chunk: Buffer; length: number }[] = []
    for (let i = 0; i < 512; i++) {
      const chunk = Buffer.alloc(BYTES)
      const release = releasing({ release: free } as never, chunk)
      socket.write(chunk, (error) => {
        release?.(error)
        if (error) broken.push({ chunk, length: chunk.length })
      })
    }
    socket.destroy()
    await once(socket, 'close')
    assert.ok(broken.length > 0)
    assert.ok(broken.every(({ length }) => length === BYTES))
  } finally {
    socket.destroy()
    reader.destroy()
    server.close()
  }
})

test('a chunk that shares its memory with something else is not freed', () => {
  const whole = Buffer.alloc(2 * BYTES)
  const half = whole.subarray(0, BYTES)
  free(half)
  assert.equal(half.length, BYTES)
  free(whole)
  assert.equal(whole.length, 0)
  assert.equal(half.length, 0)
  assert.doesNotThrow(() => free(whole))
})

test('memory that pieces share is freed with its last byte, in any order', () => {
  const chunk = Buffer.alloc(BYTES)
  share(chunk)
  const pieces = [chunk.subarray(9, 1000), chunk.subarray(1009, 40_000), chunk.subarray(40_000)]
  useUp(chunk.buffer, 9)
  free(pieces[2]!)
  free(pieces[0]!)
  free(pieces[1]!)
  assert.equal(chunk.length, BYTES) // a header is not accounted for
  useUp(chunk.buffer, 9)
  assert.equal(chunk.length, 0)
  assert.ok(pieces.every((piece) => piece.length === 0))
})

test('memory stays while a piece of it is in use', () => {
  const chunk = Buffer.alloc(BYTES, 7)
  share(chunk)
  free(chunk.subarray(0, BYTES - 1))
  assert.equal(chunk.at(-1), 7)
})
