// Counts the values of a JSON text before it is parsed: parsing costs time for every value, and more for every member of an object.
import { IsletError, LIMITS } from '@islet/contract'

const QUOTE = 0x22
const BACKSLASH = 0x5c
const COMMA = 0x2c
const COLON = 0x3a
const OPENS = [0x5b, 0x7b]
const CLOSES = [0x5d, 0x7d]
/** Nesting that the bodies of our routes add around a value. */
const AROUND = 8

/** Throws `bad_request` for a text that would take too long to parse. */
export function checkShape(bytes: Buffer): void {
  let depth = 0
  let members = 0
  let values = 1
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at]!
    if (byte === QUOTE) at = endOfString(bytes, at)
    else if (byte === COMMA) values++
    else if (byte === COLON) members++
    else if (OPENS.includes(byte)) {
      values++
      if (++depth > LIMITS.jsonDepth + AROUND)
        throw new IsletError('bad_request', 'The body is nested too deeply.')
    } else if (CLOSES.includes(byte)) depth--
    if (members > LIMITS.jsonMembers || values > LIMITS.jsonValues)
      throw new IsletError(
        'bad_request',
        `A body has at most ${LIMITS.jsonMembers} members of objects, and ${LIMITS.jsonValues} values.`,
        { hint: 'Send large data as a text, or as a file.' },
      )
  }
}

/** The index of the closing quote. */
function endOfString(bytes: Buffer, start: number): number {
  for (let from = start + 1; ; ) {
    const quote = bytes.indexOf(QUOTE, from)
    if (quote === -1) return bytes.length
    let escapes = 0
    while (bytes[quote - 1 - escapes] === BACKSLASH) escapes++
    if (escapes % 2 === 0) return quote
    from = quote + 1
  }
}
