import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { connect, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { free } from '../../wire/chunks.ts'
import { encodeMessage } from '../../wire/fields.ts'
import { encodeFrame, type Frame, FrameDecoder } from '../../wire/frames.ts'
import type { Connection } from '../connection.ts'
import { FIELDS, INITIAL_WINDOW, MESSAGE } from '../messages.gen.ts'
import { Writer } from '../writer.ts'
import { Outflow } from './outflow.ts'

const STREAM = 7

test('a chunk that the window cuts is released only when all of it has left', async (t) => {
  const [near, far] = await socketPair(t)
  const writer = new Writer(near, () => assert.fail('nothing is stuck'))
  const outflow = new Outflow({ out: writer } as Connection, STREAM)
  const received: Buffer[] = []
  const decoder = new FrameDecoder()
  far.on('data', (bytes) => {
    decoder.push(bytes, ({ type, payload }) => type === MESSAGE.DATA && received.push(Buffer.from(payload)))
  })
  const begin = Buffer.alloc(INITIAL_WINDOW - 30_000)
  assert.equal(await outflow.send(begin), true)
  while (near.writableLength > 0) await setImmediate()

  far.pause()
  while (near.writableLength === 0) writer.frame(encodeFrame(MESSAGE.PING, 0, Buffer.alloc(4096)))
  const chunk = Buffer.from(new Uint8Array(randomBytes(40_000)).buffer)
  const content = Buffer.from(chunk)
  let isReleased = false
  const sending = outflow.send(chunk, () => {
    isReleased = true
    free(chunk)
  })
  assert.equal(writer.congested, false, 'the second part goes out at once')
  outflow.onWindow(windowOf(2 * INITIAL_WINDOW))
  assert.equal(await sending, true)
  assert.equal(isReleased, false, 'it waits for the reader')

  far.resume()
  near.end()
  await once(far, 'end')
  assert.ok(isReleased)
  assert.equal(chunk.length, 0)
  assert.ok(Buffer.concat([begin, content]).equals(Buffer.concat(received)))
})

function windowOf(limit: number): Frame {
  const payload = encodeMessage(MESSAGE.WINDOW, STREAM, FIELDS.WINDOW!, { limit }).subarray(9)
  return { type: MESSAGE.WINDOW, stream: STREAM, payload, at: 0, length: payload.length }
}

async function socketPair(t: { after(end: () => void): void }): Promise<[Socket, Socket]> {
  const directory = mkdtempSync(join(tmpdir(), 'islet-outflow-'))
  const server = createServer({ allowHalfOpen: true }).listen(join(directory, 'socket'))
  const accepted = once(server, 'connection')
  const near = connect(join(directory, 'socket'))
  const [far] = (await accepted) as [Socket]
  t.after(() => {
    near.destroy()
    far.destroy()
    server.close()
    rmSync(directory, { recursive: true })
  })
  return [near, far]
}
