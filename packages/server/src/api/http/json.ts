// JSON text in pieces of bounded size, so that the sender can serve other requests in between and wait for a slow client.
import { LongText } from '../../data/output/kept-bytes.ts'

/** Longer strings become garbage that only a full collection frees. */
const PIECE_CHARACTERS = 16 * 1024
/** The memory of a value besides its text. */
const VALUE_BYTES = 16

/** About how much memory a value takes; stops counting beyond `most`. */
export function sizeOf(value: unknown, most: number): number {
  if (typeof value === 'string') return VALUE_BYTES + value.length
  if (typeof value !== 'object' || value === null) return VALUE_BYTES
  if (isIterable(value)) return Number.POSITIVE_INFINITY
  let size = VALUE_BYTES
  const isArray = Array.isArray(value)
  for (const key in value) {
    size += (isArray ? 0 : key.length) + sizeOf((value as Record<string, unknown>)[key], most - size)
    if (size > most) break
  }
  return size
}

export function* jsonPieces(value: unknown): Generator<string> {
  let piece = ''
  for (const part of parts(value)) {
    piece += part
    if (piece.length < PIECE_CHARACTERS) continue
    yield piece
    piece = ''
  }
  if (piece !== '') yield piece
}

function* parts(value: unknown): Generator<string> {
  if (typeof value === 'string' && value.length > PIECE_CHARACTERS) return yield* textParts(slices(value))
  if (value instanceof LongText) return yield* textParts(value)
  if (typeof value !== 'object' || value === null || sizeOf(value, PIECE_CHARACTERS) <= PIECE_CHARACTERS)
    return yield JSON.stringify(value)
  if (Array.isArray(value) || isIterable(value)) return yield* listParts(value as Iterable<unknown>)
  let before = '{'
  for (const [key, item] of Object.entries(value)) {
    if (item === undefined) continue
    yield `${before}${JSON.stringify(key)}:`
    yield* parts(item)
    before = ','
  }
  yield before === '{' ? '{}' : '}'
}

function* listParts(items: Iterable<unknown>): Generator<string> {
  let before = '['
  for (const item of items) {
    yield before
    yield* parts(item)
    before = ','
  }
  yield before === '[' ? '[]' : ']'
}

function* textParts(texts: Iterable<string>): Generator<string> {
  yield '"'
  for (const text of texts) yield JSON.stringify(text).slice(1, -1)
  yield '"'
}

/** Never splits a surrogate pair: half of one would be written as an escape. */
export function* slices(text: string): Generator<string> {
  for (let at = 0; at < text.length; ) {
    let end = Math.min(at + PIECE_CHARACTERS, text.length)
    if (end < text.length && (text.charCodeAt(end - 1) & 0xfc00) === 0xd800) end--
    yield text.slice(at, end)
    at = end
  }
}

const isIterable = (value: object): boolean => !Array.isArray(value) && Symbol.iterator in value
