// Fields in the payload of a frame, as the tables describe them that `npm run gen` prints from the .def files.
import { allocateFrame, HEADER_BYTES, WireError } from './frames.ts'

type FieldKind = 'u32' | 'u64' | 'str' | 'bytes' | FieldTable

export interface FieldSpec {
  tag: number
  name: string
  kind: FieldKind
  list?: true
}

/** The fields of one message or record, by name. */
export type FieldTable = readonly FieldSpec[]

type FieldValue = number | string | Uint8Array | Fields | undefined
export interface Fields {
  [name: string]: FieldValue | readonly (number | string | Uint8Array | Fields)[]
}

const FIELD_BYTES = 5
const MAX_LIST = 65_536
const TWO_32 = 0x1_0000_0000

/** A payload. BYTES may be given as a string and is written as UTF-8. */
export function encodeFields(table: FieldTable, values: Fields): Buffer {
  const payload = Buffer.allocUnsafe(measureFields(table, values))
  writeFields(payload, 0, table, values)
  return payload
}

/** A whole frame in one allocation. A payload over the maximum, or a value that does not fit, throws WireError. */
export function encodeMessage(type: number, stream: number, table: FieldTable, values: Fields): Buffer {
  const frame = allocateFrame(type, stream, measureFields(table, values))
  writeFields(frame, HEADER_BYTES, table, values)
  return frame
}

function measureFields(table: FieldTable, values: Fields): number {
  let total = 0
  for (const spec of table) {
    const value = values[spec.name]
    if (value === undefined) continue
    if (!spec.list) total += FIELD_BYTES + measureValue(spec, value as FieldValue)
    else for (const item of value as readonly FieldValue[]) total += FIELD_BYTES + measureValue(spec, item)
  }
  return total
}

function measureValue(spec: FieldSpec, value: FieldValue): number {
  if (spec.kind === 'u32') return 4
  if (spec.kind === 'u64') return 8
  if (typeof value === 'string') return Buffer.byteLength(value)
  if (spec.kind === 'bytes') return (value as Uint8Array).length
  return measureFields(spec.kind as FieldTable, value as Fields)
}

function writeFields(target: Buffer, start: number, table: FieldTable, values: Fields): number {
  let at = start
  for (const spec of table) {
    const value = values[spec.name]
    if (value === undefined) continue
    if (!spec.list) at = writeField(target, at, spec, value as FieldValue)
    else for (const item of value as readonly FieldValue[]) at = writeField(target, at, spec, item)
  }
  return at
}

function writeField(target: Buffer, start: number, spec: FieldSpec, value: FieldValue): number {
  const at = start + FIELD_BYTES
  const end = writeValue(target, at, spec, value)
  target[start] = spec.tag
  target.writeUInt32LE(end - at, start + 1)
  return end
}

function writeValue(target: Buffer, at: number, spec: FieldSpec, value: FieldValue): number {
  if (spec.kind === 'u32') {
    const number = checkNumber(spec, value, TWO_32 - 1)
    return target.writeUInt32LE(number, at)
  }
  if (spec.kind === 'u64') {
    const number = checkNumber(spec, value, Number.MAX_SAFE_INTEGER)
    target.writeUInt32LE(number % TWO_32, at)
    return target.writeUInt32LE(Math.floor(number / TWO_32), at + 4)
  }
  if (typeof value === 'string') {
    if (value.includes('\0')) throw new WireError(`${spec.name} holds a NUL`)
    return at + target.write(value, at)
  }
  if (spec.kind === 'bytes') {
    target.set(value as Uint8Array, at)
    return at + (value as Uint8Array).length
  }
  return writeFields(target, at, spec.kind as FieldTable, value as Fields)
}

function checkNumber(spec: FieldSpec, value: FieldValue, max: number): number {
  if (typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= max) return value
  throw new WireError(`${spec.name} is not a whole number from 0 to ${max}`)
}

/**
 * Reads a payload from an untrusted peer. Unknown tags are skipped, a malformed field throws WireError, lists are bounded. A U64
 * beyond 2^53 becomes the largest safe integer, because a file may claim such a size. An absent list is []. Bytes are views into
 * the payload.
 */
export function decodeFields(table: FieldTable, payload: Buffer): Fields {
  return readFields(table, payload, 0, payload.length)
}

function readFields(table: FieldTable, payload: Buffer, start: number, end: number): Fields {
  const values: Fields = {}
  const specs = specsByTag(table)
  for (const spec of table) if (spec.list) values[spec.name] = []
  let at = start
  while (at < end) {
    if (end - at < FIELD_BYTES) throw new WireError('a field is cut short')
    const spec = specs[payload[at]!]
    const length = payload.readUInt32LE(at + 1)
    at += FIELD_BYTES
    if (length > end - at) throw new WireError('a field is longer than its payload')
    if (spec) put(values, spec, readValue(spec, payload, at, length))
    at += length
  }
  return values
}

const byTag = new WeakMap<FieldTable, (FieldSpec | undefined)[]>()

function specsByTag(table: FieldTable): (FieldSpec | undefined)[] {
  let specs = byTag.get(table)
  if (!specs) {
    specs = new Array(256).fill(undefined) as undefined[]
    for (const spec of table) specs[spec.tag] = spec
    byTag.set(table, specs)
  }
  return specs
}

function put(values: Fields, spec: FieldSpec, value: number | string | Uint8Array | Fields): void {
  if (!spec.list) {
    values[spec.name] = value
    return
  }
  const list = values[spec.name] as (number | string | Uint8Array | Fields)[]
  if (list.length >= MAX_LIST) throw new WireError(`${spec.name} repeats more than ${MAX_LIST} times`)
  list.push(value)
}

function readValue(
  spec: FieldSpec,
  payload: Buffer,
  at: number,
  length: number,
): number | string | Uint8Array | Fields {
  if (spec.kind === 'u32') {
    if (length !== 4) throw new WireError(`${spec.name} is not a u32`)
    return payload.readUInt32LE(at)
  }
  if (spec.kind === 'u64') {
    if (length !== 8) throw new WireError(`${spec.name} is not a u64`)
    return Math.min(readAnyU64(payload, at), Number.MAX_SAFE_INTEGER)
  }
  if (spec.kind === 'str') return payload.toString('utf8', at, at + length)
  if (spec.kind === 'bytes') return payload.subarray(at, at + length)
  return readFields(spec.kind, payload, at, at + length)
}

/** A u64 that a number holds exactly; a larger one throws WireError. */
export function readU64(bytes: Buffer, at: number, name: string): number {
  const value = readAnyU64(bytes, at)
  if (value > Number.MAX_SAFE_INTEGER) throw new WireError(`${name} is out of range`)
  return value
}

function readAnyU64(bytes: Buffer, at: number): number {
  return bytes.readUInt32LE(at + 4) * TWO_32 + bytes.readUInt32LE(at)
}

export function writeU64(bytes: Buffer, at: number, value: number): void {
  bytes.writeUInt32LE(value % TWO_32, at)
  bytes.writeUInt32LE(Math.floor(value / TWO_32), at + 4)
}
