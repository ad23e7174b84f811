import assert from 'node:assert/strict'
import { test } from 'node:test'
import { decodeFields, encodeFields, encodeMessage, type FieldTable, readU64, writeU64 } from './fields.ts'
import { encodeFrame, MAX_PAYLOAD, WireError } from './frames.ts'

const POINT: FieldTable = [
  { tag: 1, name: 'x', kind: 'u32' },
  { tag: 2, name: 'label', kind: 'str' },
]
const TABLE: FieldTable = [
  { tag: 1, name: 'count', kind: 'u32' },
  { tag: 2, name: 'size', kind: 'u64' },
  { tag: 3, name: 'name', kind: 'str' },
  { tag: 4, name: 'blob', kind: 'bytes', list: true },
  { tag: 5, name: 'point', kind: POINT },
  { tag: 6, name: 'points', kind: POINT, list: true },
]
const VALUES = {
  count: 7,
  size: 2 ** 40 + 5,
  name: 'grün',
  blob: [Buffer.from([0, 1]), Buffer.alloc(0)],
  point: { x: 1, label: 'a' },
  points: [{ x: 2 }, { x: 3, label: 'c' }],
}

test('fields have the layout that wire.h draws', () => {
  const bytes = encodeFields(TABLE, { count: 1, name: 'ab', size: 0x0000_0001_0000_0002 })
  assert.equal(bytes.toString('hex'), '0104000000010000000208000000020000000100000003020000006162')
})

test('what was encoded is what is decoded', () => {
  assert.deepEqual(decodeFields(TABLE, encodeFields(TABLE, VALUES)), VALUES)
})

test('a message is its header and its fields', () => {
  assert.deepEqual(encodeMessage(9, 4, TABLE, VALUES), encodeFrame(9, 4, encodeFields(TABLE, VALUES)))
})

test('bytes may be given as text', () => {
  const decoded = decodeFields(TABLE, encodeFields(TABLE, { blob: ['é', 'x'] }))
  assert.deepEqual(decoded.blob, [Buffer.from('é'), Buffer.from('x')])
})

test('an absent list is empty, and an unknown tag is skipped', () => {
  const unknown = Buffer.from([99, 1, 0, 0, 0, 42])
  assert.deepEqual(decodeFields(TABLE, unknown), { blob: [], points: [] })
})

test('a payload that is cut short is refused, or is a valid shorter message', () => {
  const bytes = encodeFields(TABLE, VALUES)
  for (let end = 0; end < bytes.length; end++) {
    try {
      decodeFields(TABLE, bytes.subarray(0, end))
    } catch (error) {
      assert.ok(error instanceof WireError, `cut at ${end}`)
    }
  }
})

test('numbers of the wrong width or out of range are refused; a u64 that is too large becomes the largest safe integer', () => {
  const field = (tag: number, value: number[]) => Buffer.from([tag, value.length, 0, 0, 0, ...value])
  assert.throws(() => decodeFields(TABLE, field(1, [1, 2, 3])), WireError)
  assert.throws(() => decodeFields(TABLE, field(2, [1, 2, 3, 4])), WireError)
  for (const top of [
    [0x1f, 0],
    [0x20, 0],
    [0, 0x40],
    [255, 255],
  ])
    assert.equal(
      decodeFields(TABLE, field(2, [255, 255, 255, 255, 255, 255, ...top])).size,
      Number.MAX_SAFE_INTEGER,
    )
  for (const count of [-1, 0.5, 2 ** 32, Number.NaN])
    assert.throws(() => encodeFields(TABLE, { count }), WireError)
  for (const size of [-1, 2 ** 53, 1.5]) assert.throws(() => encodeFields(TABLE, { size }), WireError)
})

test('a NUL in text and a payload over the maximum are refused before they are sent', () => {
  assert.throws(() => encodeFields(TABLE, { name: 'a\0b' }), WireError)
  assert.throws(() => encodeMessage(1, 1, TABLE, { name: 'x'.repeat(MAX_PAYLOAD) }), WireError)
})

test('lists are bounded', () => {
  const payload = Buffer.alloc(65_537 * 5)
  for (let at = 0; at < payload.length; at += 5) payload[at] = 4
  assert.throws(() => decodeFields(TABLE, payload), WireError)
})

test('a field that claims to be longer than its payload is refused', () => {
  assert.throws(() => decodeFields(TABLE, Buffer.from([3, 255, 255, 255, 255, 65])), WireError)
})

test('offsets are decoded as they were encoded', () => {
  const bytes = Buffer.alloc(8)
  for (const value of [0, 1, 2 ** 32 - 1, 2 ** 32, 2 ** 45 + 3, Number.MAX_SAFE_INTEGER]) {
    writeU64(bytes, 0, value)
    assert.equal(bytes.readBigUInt64LE(), BigInt(value))
    assert.equal(readU64(bytes, 0, 'offset'), value)
  }
})
