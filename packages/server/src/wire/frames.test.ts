import assert from 'node:assert/strict'
import { test } from 'node:test'
import { encodeFrame, type Frame, FrameDecoder, frameHeader, MAX_PAYLOAD, WireError } from './frames.ts'

const FRAMES = [
  { type: 1, stream: 0, payload: Buffer.from('hello') },
  { type: 20, stream: 7, payload: Buffer.alloc(0) },
  { type: 19, stream: 0xffff_ffff, payload: Buffer.from(Array.from({ length: 40 }, (_, i) => i)) },
  { type: 52, stream: 3, payload: Buffer.from('x0123456789abcdef') },
]
const BYTES = Buffer.concat(FRAMES.map(({ type, stream, payload }) => encodeFrame(type, stream, payload)))

test('a frame has the layout that wire.h draws', () => {
  const frame = encodeFrame(0x12, 0x01020304, Buffer.from([0xaa, 0xbb]))
  assert.equal(frame.toString('hex'), '02000000' + '12' + '04030201' + 'aabb')
  assert.deepEqual(frameHeader(0x12, 0x01020304, 2), frame.subarray(0, 9))
})

test('frames come out the same wherever the bytes are split in two', () => {
  for (let at = 0; at <= BYTES.length; at++) {
    const frames = decode([BYTES.subarray(0, at), BYTES.subarray(at)])
    assert.deepEqual(frames, FRAMES, `split at ${at}`)
  }
})

test('frames come out the same wherever the bytes are split in three', () => {
  for (let first = 0; first <= BYTES.length; first++)
    for (let second = first; second <= BYTES.length; second++) {
      const chunks = [BYTES.subarray(0, first), BYTES.subarray(first, second), BYTES.subarray(second)]
      assert.deepEqual(decode(chunks), FRAMES, `split at ${first} and ${second}`)
    }
})

test('types that come in pieces are never gathered, and their first piece holds the prefix', () => {
  const pieces = new Map([
    [19, 0],
    [52, 9],
  ])
  for (let size = 1; size <= BYTES.length; size++) {
    const chunks: Buffer[] = []
    for (let at = 0; at < BYTES.length; at += size) chunks.push(BYTES.subarray(at, at + size))
    const whole = new Map<number, Buffer[]>()
    const decoder = new FrameDecoder({ pieces })
    for (const chunk of chunks)
      decoder.push(chunk, (frame) => {
        const parts = whole.get(frame.type) ?? []
        assert.equal(frame.at, Buffer.concat(parts).length)
        assert.equal(frame.length, FRAMES.find((sent) => sent.type === frame.type)!.payload.length)
        if (frame.type === 52 && frame.at === 0) assert.ok(frame.payload.length >= 9)
        whole.set(frame.type, [...parts, Buffer.from(frame.payload)])
      })
    for (const { type, payload } of FRAMES) assert.deepEqual(Buffer.concat(whole.get(type)!), payload)
  }
})

test('a payload that lies in one chunk is delivered without a copy', () => {
  const bytes = encodeFrame(19, 1, Buffer.alloc(1000))
  new FrameDecoder().push(bytes, (frame) => assert.equal(frame.payload.buffer, bytes.buffer))
})

test('a length over the maximum throws as soon as the header is there', () => {
  const header = frameHeader(1, 1, MAX_PAYLOAD)
  const decoder = new FrameDecoder()
  decoder.push(header, () => assert.fail())
  header.writeUInt32LE(MAX_PAYLOAD + 1)
  const strict = new FrameDecoder()
  strict.push(header.subarray(0, 8), () => assert.fail())
  assert.throws(() => strict.push(header.subarray(8), () => assert.fail()), WireError)
  assert.throws(() => encodeFrame(1, 1, Buffer.alloc(MAX_PAYLOAD + 1)), WireError)
})

function decode(chunks: Buffer[]): Pick<Frame, 'type' | 'stream' | 'payload'>[] {
  const frames: Pick<Frame, 'type' | 'stream' | 'payload'>[] = []
  const decoder = new FrameDecoder()
  for (const chunk of chunks)
    decoder.push(chunk, ({ type, stream, payload }) =>
      frames.push({ type, stream, payload: Buffer.from(payload) }),
    )
  return frames
}

test('bytes of a chunk that are in no payload are counted, wherever the bytes are split', () => {
  const pieces = new Map([[16, 0]])
  const frames = [
    encodeFrame(16, 1, Buffer.alloc(20)),
    encodeFrame(17, 2, Buffer.alloc(20)),
    encodeFrame(16, 3, Buffer.alloc(0)),
  ]
  // In memory of its own, in which nothing that is gathered can lie.
  const bytes = Buffer.alloc(frames.reduce((length, frame) => length + frame.length, 0))
  Buffer.concat(frames).copy(bytes)
  for (let cut = 0; cut <= bytes.length; cut++) {
    const decoder = new FrameDecoder({ pieces })
    for (const chunk of [bytes.subarray(0, cut), bytes.subarray(cut)]) {
      let given = 0
      const ungiven = decoder.push(chunk, ({ payload }) => {
        if (payload.buffer === chunk.buffer) given += payload.length
      })
      assert.equal(ungiven, chunk.length - given, `cut at ${cut}`)
    }
  }
})
