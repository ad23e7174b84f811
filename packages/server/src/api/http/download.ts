// A file as the answer to GET or HEAD: all of it, a range, or 304.
import { type FileEntry, IsletError } from '@islet/contract'
import type { Files } from '../../data/files/files.ts'
import { Bytes, type Call } from '../route.ts'
import { begun } from './begun.ts'

/** A suffix range has a negative start. */
interface Range {
  start: number
  end?: number
}

type Download = (sandboxId: string, path: string, call: DownloadCall) => Promise<Bytes>
type DownloadCall = Pick<Call<'readFile'>, 'headers' | 'isHead' | 'signal'>

export function createDownload(files: Files): Download {
  return (id, path, call) => (call.isHead ? describeFile(id, path, call) : readFile(id, path, call))

  async function readFile(id: string, path: string, { headers, signal }: DownloadCall): Promise<Bytes> {
    // Weak ETags never match an If-Range: the whole file is the right answer.
    const range = headers['if-range'] === undefined ? parseRange(headers.range) : undefined
    // `-0` asks for the last zero bytes of a file.
    if (range && Object.is(range.start, -0)) throw await outside(id, path)
    const { entry, start, length, body } = await openRange(id, path, range, signal)
    if (range && !length) {
      await discard(body)
      throw await outside(id, path)
    }
    if (isKnown(headers['if-none-match'], entry)) {
      await discard(body)
      return new Bytes(undefined, { ETag: etagOf(entry) }, 304)
    }
    const part = range && {
      'Content-Range': `bytes ${start}-${start + (length ?? 0) - 1}/${entry.sizeBytes}`,
    }
    const size = length !== undefined && { 'Content-Length': length }
    // Files of unknown size belong to the kernel (/proc); some cannot be read at all.
    const content = length === undefined ? await begun(body) : body
    return new Bytes(content, { ...headersOf(entry), ...part, ...size }, range ? 206 : 200)
  }

  async function openRange(id: string, path: string, range: Range | undefined, signal: AbortSignal) {
    try {
      return await files.read(id, path, { ...range, signal })
    } catch (error) {
      if (error instanceof IsletError && error.code === 'range_not_satisfiable') throw await outside(id, path)
      throw error
    }
  }

  async function outside(id: string, path: string): Promise<IsletError> {
    const { sizeBytes } = await files.stat(id, path, { follow: true })
    return new IsletError('range_not_satisfiable', undefined, { details: { sizeBytes } })
  }

  async function describeFile(id: string, path: string, { headers }: DownloadCall): Promise<Bytes> {
    const entry = await files.stat(id, path, { follow: true })
    if (entry.type === 'directory') throw new IsletError('is_a_directory')
    if (entry.type !== 'file') throw new IsletError('not_a_file')
    if (isKnown(headers['if-none-match'], entry)) return new Bytes(undefined, { ETag: etagOf(entry) }, 304)
    return new Bytes(undefined, { ...headersOf(entry), 'Content-Length': entry.sizeBytes })
  }
}

async function discard(body: AsyncIterable<Buffer>): Promise<void> {
  await body[Symbol.asyncIterator]().return?.()
}

function headersOf(entry: FileEntry): Record<string, string> {
  return {
    'Content-Type': 'application/octet-stream',
    'Last-Modified': new Date(entry.modifiedAt).toUTCString(),
    ETag: etagOf(entry),
    'Accept-Ranges': 'bytes',
  }
}

function etagOf({ sizeBytes, modifiedAt }: FileEntry): string {
  return `W/"${sizeBytes.toString(16)}-${Date.parse(modifiedAt).toString(16)}"`
}

function isKnown(ifNoneMatch: string | undefined, entry: FileEntry): boolean {
  if (ifNoneMatch === undefined) return false
  const bare = (tag: string): string => tag.trim().replace(/^W\//, '')
  return (
    ifNoneMatch.trim() === '*' ||
    ifNoneMatch
      .split(',')
      .map(bare)
      .includes(bare(etagOf(entry)))
  )
}

/** One byte range. Anything else (other units, several ranges) is ignored, as RFC 9110 allows: the whole file is sent. */
function parseRange(header: string | undefined): Range | undefined {
  const match = header === undefined ? null : /^bytes=\s*(\d*)-(\d*)\s*$/.exec(header)
  if (!match || (match[1] === '' && match[2] === '')) return undefined
  if (match[1] === '') return { start: -bounded(match[2]!) }
  const start = bounded(match[1]!)
  if (match[2] === '') return { start }
  const end = bounded(match[2]!)
  return end < start ? undefined : { start, end }
}

const bounded = (digits: string): number => Math.min(Number(digits), Number.MAX_SAFE_INTEGER)
