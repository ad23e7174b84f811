// Reads the one kind of tar that an export writes: POSIX (pax) headers as GNU tar writes them. Anything else is refused.
import { IsletError } from '@islet/contract'

const BLOCK = 512
/** For the names and extended attributes of one entry. */
const MAX_PAX_BYTES = 1024 * 1024
/** Zeros with which tar fills its last record. */
const MAX_TAIL_BYTES = 1024 * 1024
/** The format in which the map of a sparse file comes before its data. */
const SPARSE_FORMAT = '1.0'

const TYPES = {
  0: 'file',
  1: 'hardlink',
  2: 'symlink',
  3: 'character',
  4: 'block',
  5: 'directory',
  6: 'fifo',
} as const
export type EntryType = (typeof TYPES)[keyof typeof TYPES]

/** Names are latin1: one character for each byte. */
export interface Entry {
  path: string
  type: EntryType
  linkPath: string
  /** Bytes of content in the tar, without padding. */
  sizeBytes: number
  device: { major: number; minor: number }
  xattrs: Map<string, string>
}

/** The headers of an entry, or a part of its content. */
export interface Piece {
  entry?: Entry
  bytes: Buffer
}

/** The unchanged bytes of the tar, entry by entry, without the zeros at its end. */
export async function* scanTar(source: AsyncIterable<Buffer>): AsyncGenerator<Piece> {
  const input = new Input(source)
  try {
    for (;;) {
      const first = await input.exactly(BLOCK)
      if (isZero(first)) return await input.onlyZeros(MAX_TAIL_BYTES)
      const head = [first]
      let header = parseHeader(first)
      let pax = new Map<string, string>()
      if (header.type === 'x') {
        if (header.size > MAX_PAX_BYTES) throw damaged('An entry has too many attributes.')
        const body = await input.exactly(padded(header.size))
        pax = parsePax(body.subarray(0, header.size))
        const next = await input.exactly(BLOCK)
        header = parseHeader(next)
        head.push(body, next)
      }
      const entry = toEntry(header, pax)
      yield { entry, bytes: Buffer.concat(head) }
      for (let left = padded(entry.sizeBytes); left > 0; ) {
        const bytes = await input.atMost(left)
        left -= bytes.length
        yield { bytes }
      }
    }
  } finally {
    await input.close()
  }
}

/** The header of a plain file. */
export function memberHeader(name: string, sizeBytes: number): Buffer {
  const header = Buffer.alloc(BLOCK)
  header.write(name, 0, 100, 'latin1')
  header.write('0000644\0', 100, 'latin1')
  header.write('0000000\0', 108, 'latin1')
  header.write('0000000\0', 116, 'latin1')
  header.write(`${sizeBytes.toString(8).padStart(11, '0')}\0`, 124, 'latin1')
  header.write('00000000000\0', 136, 'latin1')
  header.write('0', 156, 'latin1')
  header.write('ustar\x0000', 257, 'latin1')
  header.write(`${checksum(header).toString(8).padStart(6, '0')}\0 `, 148, 'latin1')
  return header
}

export function padding(sizeBytes: number): Buffer {
  return Buffer.alloc(padded(sizeBytes) - sizeBytes)
}

export const END_OF_TAR = Buffer.alloc(2 * BLOCK)

export function damaged(message: string, cause?: unknown): IsletError {
  return new IsletError('snapshot_damaged', message, { cause })
}

interface Header {
  name: string
  linkName: string
  type: string
  size: number
  device: { major: number; minor: number }
}

function parseHeader(block: Buffer): Header {
  const text = (from: number, length: number) => {
    const end = block.indexOf(0, from)
    return block.toString('latin1', from, end === -1 ? from + length : Math.min(end, from + length))
  }
  const number = (from: number, length: number) => {
    const digits = text(from, length)
    if (!/^[0-7]*$/.test(digits)) throw damaged('A header has an invalid number.')
    return Number.parseInt(digits || '0', 8)
  }
  if (text(257, 6) !== 'ustar' || number(148, 8) !== checksum(block))
    throw damaged('An entry has no valid header.')
  // Mode, owner, group and time must be octal too, so that GNU tar reads them as this reader does.
  for (const [from, length] of [
    [100, 8],
    [108, 8],
    [116, 8],
    [136, 12],
  ] as const)
    number(from, length)
  const prefix = text(345, 155)
  return {
    name: prefix === '' ? text(0, 100) : `${prefix}/${text(0, 100)}`,
    linkName: text(157, 100),
    type: String.fromCharCode(block[156]!),
    size: number(124, 12),
    device: { major: number(329, 8), minor: number(337, 8) },
  }
}

/** Records of "<length> <key>=<value>\n". */
function parsePax(body: Buffer): Map<string, string> {
  const found = new Map<string, string>()
  for (let at = 0; at < body.length; ) {
    const space = body.indexOf(0x20, at)
    const digits = space === -1 ? '' : body.toString('latin1', at, space)
    const end = at + Number(digits)
    const equals = body.indexOf(0x3d, space)
    const isRecord = /^\d{1,8}$/.test(digits) && end <= body.length && equals > space && equals < end
    if (!isRecord || body[end - 1] !== 0x0a) throw damaged('The attributes of an entry cannot be read.')
    const key = body.toString('latin1', space + 1, equals)
    if (found.has(key)) throw damaged('An attribute of an entry is given twice.')
    found.set(key, body.toString('latin1', equals + 1, end - 1))
    at = end
  }
  return found
}

const NAME = /^[^\0]+$/
const COUNT = /^\d{1,16}$/
const KEYS: Record<string, RegExp> = {
  path: NAME,
  linkpath: NAME,
  size: COUNT,
  uid: COUNT,
  gid: COUNT,
  mtime: /^-?\d{1,16}(\.\d{1,20})?$/,
  'GNU.sparse.major': COUNT,
  'GNU.sparse.minor': COUNT,
  'GNU.sparse.name': NAME,
  'GNU.sparse.realsize': COUNT,
}
const XATTR = 'SCHILY.xattr.'

function toEntry(header: Header, pax: Map<string, string>): Entry {
  const type = TYPES[header.type as unknown as keyof typeof TYPES]
  if (type === undefined) throw damaged('An entry has an unknown type.')
  const xattrs = new Map<string, string>()
  let isSparse = false
  for (const [key, value] of pax) {
    if (key.startsWith(XATTR)) xattrs.set(key.slice(XATTR.length), value)
    else if (!Object.hasOwn(KEYS, key) || !KEYS[key]!.test(value))
      throw damaged('An entry has an unknown attribute.')
    if (key.startsWith('GNU.sparse.')) isSparse = true
  }
  const format = `${pax.get('GNU.sparse.major')}.${pax.get('GNU.sparse.minor')}`
  if (isSparse && (type !== 'file' || format !== SPARSE_FORMAT || !pax.has('GNU.sparse.name')))
    throw damaged('A sparse file cannot be read.')
  const sizeBytes = pax.has('size') ? Number(pax.get('size')) : header.size
  if (!Number.isSafeInteger(sizeBytes) || sizeBytes < 0) throw damaged('An entry has an invalid size.')
  if (type !== 'file' && sizeBytes !== 0) throw damaged('An entry that is not a file has content.')
  return {
    path: pax.get('GNU.sparse.name') ?? pax.get('path') ?? header.name,
    type,
    linkPath: pax.get('linkpath') ?? header.linkName,
    sizeBytes,
    device: header.device,
    xattrs,
  }
}

/** The field of the checksum itself counts as spaces. */
function checksum(header: Buffer): number {
  let sum = 8 * 0x20
  for (let at = 0; at < BLOCK; at++) if (at < 148 || at >= 156) sum += header[at]!
  return sum
}

/** Rounded up to whole blocks. */
export function padded(sizeBytes: number): number {
  return Math.ceil(sizeBytes / BLOCK) * BLOCK
}

function isZero(bytes: Buffer): boolean {
  return bytes.every((byte) => byte === 0)
}

/** Reads given numbers of bytes. */
class Input {
  readonly #source: AsyncIterator<Buffer>
  #rest: Buffer = Buffer.alloc(0)

  constructor(source: AsyncIterable<Buffer>) {
    this.#source = source[Symbol.asyncIterator]()
  }

  async exactly(bytes: number): Promise<Buffer> {
    const parts: Buffer[] = []
    for (let left = bytes; left > 0; left -= parts.at(-1)!.length) parts.push(await this.atMost(left))
    return parts.length === 1 ? parts[0]! : Buffer.concat(parts)
  }

  /** At least one. */
  async atMost(bytes: number): Promise<Buffer> {
    if (this.#rest.length === 0 && !(await this.#more())) throw damaged('The file ends too early.')
    const taken = this.#rest.subarray(0, bytes)
    this.#rest = this.#rest.subarray(taken.length)
    return taken
  }

  async onlyZeros(maxBytes: number): Promise<void> {
    for (let seen = this.#rest.length; ; seen += this.#rest.length) {
      if (!isZero(this.#rest) || seen > maxBytes) throw damaged('The file has data after its end.')
      this.#rest = this.#rest.subarray(this.#rest.length)
      if (!(await this.#more())) return
    }
  }

  async close(): Promise<void> {
    await this.#source.return?.()
  }

  async #more(): Promise<boolean> {
    while (this.#rest.length === 0) {
      const { done, value } = await this.#source.next()
      if (done) return false
      this.#rest = value
    }
    return true
  }
}
