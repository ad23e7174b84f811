// Fields inside a frame's payload, driven by the tables that `npm run gen` prints from the .def files.
import { WireError } from './frames.ts'

export type FieldKind = 'u32' | 'u64' | 'str' | 'bytes' | FieldTable

export interface FieldSpec {
  tag: number
  name: string
  kind: FieldKind
  list?: true
}

/** The fields of one message or record, by name. */
export type FieldTable = readonly FieldSpec[]

export type FieldValue = number | string | Uint8Array | Fields | undefined
export interface Fields {
  [name: string]: FieldValue | readonly (number | string | Uint8Array | Fields)[]
}

const FIELD_BYTES = 5
const MAX_LIST = 65_536

export function encodeFields(table: FieldTable, values: Fields): Buffer {
  const parts: Uint8Array[] = []
  for (const spec of table) {
    const value = values[spec.name]
    if (value === undefined) continue
    const items = spec.list ? (value as readonly FieldValue[]) : [value as FieldValue]
    for (const item of items) {
      const bytes = encodeValue(spec, item)
      const header = Buffer.allocUnsafe(FIELD_BYTES)
      header[0] = spec.tag
      header.writeUInt32LE(bytes.length, 1)
      parts.push(header, bytes)
    }
  }
  return Buffer.concat(parts)
}

function encodeValue(spec: FieldSpec, value: FieldValue): Uint8Array {
  if (spec.kind === 'u32') {
    const bytes = Buffer.allocUnsafe(4)
    bytes.writeUInt32LE(value as number)
    return bytes
  }
  if (spec.kind === 'u64') {
    const bytes = Buffer.allocUnsafe(8)
    bytes.writeBigUInt64LE(BigInt(value as number))
    return bytes
  }
  if (spec.kind === 'str') {
    const text = value as string
    if (text.includes('\0')) throw new WireError(`${spec.name} holds a NUL`)
    return Buffer.from(text)
  }
  if (spec.kind === 'bytes') return value as Uint8Array
  return encodeFields(spec.kind, value as Fields)
}

/**
 * Reads a payload from an untrusted peer. Unknown tags are skipped, a malformed field throws WireError, lists are
 * bounded, U64 beyond 2^53 throws. A list that does not occur is []. Bytes are views into the payload.
 */
export function decodeFields(table: FieldTable, payload: Buffer): Fields {
  const values: Fields = {}
  for (const spec of table) if (spec.list) values[spec.name] = []
  let at = 0
  while (at < payload.length) {
    if (payload.length - at < FIELD_BYTES) throw new WireError('a field is cut short')
    const tag = payload[at]!
    const length = payload.readUInt32LE(at + 1)
    at += FIELD_BYTES
    if (length > payload.length - at) throw new WireError('a field is longer than its payload')
    const spec = table.find((candidate) => candidate.tag === tag)
    if (spec) put(values, spec, decodeValue(spec, payload.subarray(at, at + length)))
    at += length
  }
  return values
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

function decodeValue(spec: FieldSpec, bytes: Buffer): number | string | Uint8Array | Fields {
  if (spec.kind === 'u32') {
    if (bytes.length !== 4) throw new WireError(`${spec.name} is not a u32`)
    return bytes.readUInt32LE(0)
  }
  if (spec.kind === 'u64') {
    if (bytes.length !== 8) throw new WireError(`${spec.name} is not a u64`)
    const value = bytes.readBigUInt64LE(0)
    if (value > BigInt(Number.MAX_SAFE_INTEGER)) throw new WireError(`${spec.name} is out of range`)
    return Number(value)
  }
  if (spec.kind === 'str') return bytes.toString('utf8')
  if (spec.kind === 'bytes') return bytes
  return decodeFields(spec.kind, bytes)
}
