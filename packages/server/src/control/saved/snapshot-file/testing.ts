// Snapshot files that no export would write, but with correct checksums.
import { createHash } from 'node:crypto'
import { zstdCompressSync } from 'node:zlib'
import { END_OF_TAR, padding } from './tar.ts'

export interface RawEntry {
  path: string
  /** The type letter of tar. Default: '0', a file. */
  type?: string
  link?: string
  content?: string
  device?: [number, number]
  /** The text in the header. */
  uid?: string
  pax?: Record<string, string>
}

export interface RawFile {
  manifest: unknown
  store?: string
  /** By name: `layer/files`. */
  trees: Record<string, RawEntry[]>
  /** Replaces the correct ones. */
  sums?: unknown
  /** After the checksums. */
  more?: RawEntry[]
}

export function rawSnapshot(file: RawFile): Buffer {
  return zstdCompressSync(rawTar(file))
}

export function rawTar({ manifest, store = '', trees, sums, more = [] }: RawFile): Buffer {
  const parts: Buffer[] = []
  const right: object[] = []
  const add = (name: string, bytes: Buffer, summed: Buffer) => {
    parts.push(bytes)
    const sha256 = createHash('sha256').update(summed).digest('hex')
    right.push({ name, sha256, sizeBytes: summed.length })
  }
  const member = (path: string, content: string) =>
    add(path, rawEntry({ path, content }), Buffer.from(content))
  member('manifest.json', JSON.stringify(manifest))
  member('store.jsonl', store)
  for (const [name, entries] of Object.entries(trees)) {
    const bytes = Buffer.concat(entries.map(rawEntry))
    add(name, bytes, bytes)
  }
  parts.push(
    rawEntry({ path: 'checksums.json', content: JSON.stringify(sums ?? right) }),
    ...more.map(rawEntry),
  )
  return Buffer.concat([...parts, END_OF_TAR])
}

function rawEntry({
  path,
  type = '0',
  link = '',
  content = '',
  device = [0, 0],
  uid,
  pax,
}: RawEntry): Buffer {
  const body = Buffer.from(content)
  const header = Buffer.alloc(512)
  const octal = (value: number, at: number, length: number) =>
    header.write(`${value.toString(8).padStart(length - 1, '0')}\0`, at, 'latin1')
  header.write(path, 0, 100, 'latin1')
  octal(type === '5' ? 0o755 : 0o644, 100, 8)
  octal(0, 108, 8)
  if (uid) header.write(uid, 108, 8, 'latin1')
  octal(0, 116, 8)
  octal(body.length, 124, 12)
  octal(0, 136, 12)
  header.write(type, 156, 'latin1')
  header.write(link, 157, 100, 'latin1')
  header.write('ustar\x0000', 257, 'latin1')
  octal(device[0], 329, 8)
  octal(device[1], 337, 8)
  header.write(' '.repeat(8), 148, 'latin1')
  header.write(
    `${header
      .reduce((sum, byte) => sum + byte, 0)
      .toString(8)
      .padStart(6, '0')}\0 `,
    148,
    'latin1',
  )
  const own = Buffer.concat([header, body, padding(body.length)])
  if (!pax) return own
  const records = Object.entries(pax).map(([key, value]) => record(`${key}=${value}\n`))
  return Buffer.concat([rawEntry({ path: 'pax', type: 'x', content: records.join('') }), own])
}

/** A pax record, which begins with its own length. */
function record(text: string): string {
  let length = text.length + 2
  while (`${length} ${text}`.length !== length) length++
  return `${length} ${text}`
}
