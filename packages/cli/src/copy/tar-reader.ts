// Reads ustar with the common extensions for long names and large files: pax (x) and GNU (L, K).
//
//   header 512: name 100, mode 8, uid 8, gid 8, size 12, mtime 12, checksum 8, type 1, link 100, ... prefix 155 at 345
//   content, padded to 512; the end is a block of zeros
import { CliError } from '../errors.ts'

export interface TarHeader {
  path: string
  type: 'file' | 'directory' | 'symlink' | 'hardlink' | 'other'
  sizeBytes: number
  mode: number
  modifiedAt: Date
  target: string
}

const BLOCK = 512
const MAX_EXTENSION_BYTES = 1024 * 1024
const TYPES: Record<string, TarHeader['type']> = {
  '0': 'file',
  '\0': 'file',
  '7': 'file',
  '1': 'hardlink',
  '2': 'symlink',
  '5': 'directory',
}

export class TarReader {
  readonly #source: AsyncIterator<Uint8Array>
  #rest: Uint8Array = new Uint8Array()
  /** Unread content and padding of the current entry. */
  #content = 0
  #padding = 0

  constructor(source: AsyncIterable<Uint8Array>) {
    this.#source = source[Symbol.asyncIterator]()
  }

  /** The next entry, or undefined at the end. Skips unread content of the entry before. */
  async next(): Promise<TarHeader | undefined> {
    const extended: Record<string, string> = {}
    for (;;) {
      for await (const _ of this.content()) {
      }
      const block = await this.#take(BLOCK)
      if (!block || block.every((byte) => byte === 0)) return this.#end()
      const size = number(block, 124, 12)
      const type = String.fromCharCode(block[156]!)
      this.#content = size
      this.#padding = (BLOCK - (size % BLOCK)) % BLOCK
      if (type === 'x') Object.assign(extended, parsePax(await this.#text(size)))
      else if (type === 'L') extended.path = (await this.#text(size)).replace(/\0.*$/s, '')
      else if (type === 'K') extended.linkpath = (await this.#text(size)).replace(/\0.*$/s, '')
      else if (type !== 'g') return this.#entry(block, type, extended)
    }
  }

  async *content(): AsyncGenerator<Uint8Array> {
    while (this.#content > 0) {
      const part = await this.#some(this.#content)
      this.#content -= part.length
      yield part
    }
    if (this.#padding > 0) await this.#take(this.#padding)
    this.#padding = 0
  }

  #entry(block: Uint8Array, type: string, extended: Record<string, string>): TarHeader {
    const isUstar = field(block, 257, 5) === 'ustar'
    const prefix = isUstar ? field(block, 345, 155) : ''
    const name = field(block, 0, 100)
    const size = extended.size === undefined ? this.#content : Number(extended.size)
    if (size !== this.#content) {
      this.#content = size
      this.#padding = (BLOCK - (size % BLOCK)) % BLOCK
    }
    const kind = TYPES[type] ?? 'other'
    return {
      path: extended.path ?? (prefix ? `${prefix}/${name}` : name),
      type: kind,
      sizeBytes: size,
      mode: number(block, 100, 8),
      modifiedAt: new Date(Number(extended.mtime ?? number(block, 136, 12)) * 1000),
      target: extended.linkpath ?? field(block, 157, 100),
    }
  }

  /** Reads to the end of the stream, so that the sender can finish. */
  async #end(): Promise<undefined> {
    while (!(await this.#source.next()).done) {}
  }

  async #text(size: number): Promise<string> {
    if (size > MAX_EXTENSION_BYTES) throw broken('a name in it is too long')
    const bytes = (await this.#take(size)) ?? new Uint8Array()
    this.#content = 0
    return new TextDecoder().decode(bytes)
  }

  /** Exactly `size` bytes; undefined if the stream is at its end. */
  async #take(size: number): Promise<Uint8Array | undefined> {
    const taken = new Uint8Array(size)
    let at = 0
    while (at < size) {
      if (this.#rest.length === 0 && !(await this.#fill())) {
        if (at === 0) return undefined
        throw broken('it ends early')
      }
      const part = this.#rest.subarray(0, size - at)
      taken.set(part, at)
      at += part.length
      this.#rest = this.#rest.subarray(part.length)
    }
    return taken
  }

  async #some(most: number): Promise<Uint8Array> {
    if (this.#rest.length === 0 && !(await this.#fill())) throw broken('it ends early')
    const part = this.#rest.subarray(0, most)
    this.#rest = this.#rest.subarray(part.length)
    return part
  }

  async #fill(): Promise<boolean> {
    for (;;) {
      const { done, value } = await this.#source.next()
      if (done) return false
      this.#rest = value
      if (value.length > 0) return true
    }
  }
}

/** Lines `LENGTH KEY=VALUE\n`; LENGTH includes its own bytes. */
function parsePax(text: string): Record<string, string> {
  const found: Record<string, string> = {}
  const bytes = new TextEncoder().encode(text)
  for (let at = 0; at < bytes.length; ) {
    const space = bytes.indexOf(0x20, at)
    const length = Number(new TextDecoder().decode(bytes.subarray(at, space)))
    if (space < 0 || !Number.isInteger(length) || length < 5 || at + length > bytes.length)
      throw broken('a pax record is not valid')
    const record = new TextDecoder().decode(bytes.subarray(space + 1, at + length - 1))
    const equals = record.indexOf('=')
    found[record.slice(0, equals)] = record.slice(equals + 1)
    at += length
  }
  return found
}

function field(block: Uint8Array, at: number, length: number): string {
  const bytes = block.subarray(at, at + length)
  const end = bytes.indexOf(0)
  return new TextDecoder().decode(end < 0 ? bytes : bytes.subarray(0, end))
}

/** Octal, or base 256 if the first bit is set. */
function number(block: Uint8Array, at: number, length: number): number {
  if (block[at]! & 0x80) {
    const value = block
      .subarray(at + 1, at + length)
      .reduce((sum, byte) => sum * 256 + byte, block[at]! & 0x7f)
    if (!Number.isSafeInteger(value)) throw broken('a number in it is too large')
    return value
  }
  const text = field(block, at, length).trim()
  if (!/^[0-7]*$/.test(text)) throw broken('a number in it is not valid')
  return Number.parseInt(text || '0', 8)
}

function broken(reason: string): CliError {
  return new CliError('bad_archive', `The archive is broken: ${reason}.`, { hint: 'Try the copy again.' })
}
