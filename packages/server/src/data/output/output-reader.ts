// Reads what output-log.ts wrote, piece by piece: little is in memory, however much is kept.
import { closeSync, fstatSync, openSync, readdirSync, readSync } from 'node:fs'
import { basename, dirname } from 'node:path'
import type { OutputChannel } from '../../guest/guest.ts'
import { share, useUp } from '../../wire/chunks.ts'

export const HEADER_BYTES = 8
export const PIECE_BYTES = 5
/** The first piece of a segment: its bytes are the segment's offset in stderr. Segments of older versions have none. */
export const MARK = 3
export const MARK_BYTES = 8
const READ_BYTES = 64 * 1024
/**
 * A reader holds its first files open, up to these limits: a client that does not read keeps no more than that on the disk. A
 * program waits for such a client after about as many bytes, so an ordinary reader misses nothing.
 */
const HELD_BYTES = 1024 * 1024
const HELD_FILES = 16

export interface OutputPiece {
  channel: OutputChannel
  bytes: Buffer
}

const CHANNELS: Record<number, RawPiece['channel']> = { 1: 'stdout', 2: 'stderr', [MARK]: 'mark' }

interface RawPiece {
  channel: OutputChannel | 'mark'
  bytes: Buffer
}

interface KeptPiece extends OutputPiece {
  /** Offset of its first byte. If it is above the end of the piece before, the bytes between were removed meanwhile. */
  at: number
  /** Offset after its last byte, for a reader that frees the bytes. */
  end: number
}

export interface Segment {
  number: number
  /** Offset of its first byte. */
  start: number
  /** The same in stderr alone. */
  stderrStart: number
}

/** A place in the output: in all of it, and in each channel. */
export interface Place {
  combined: number
  stdout: number
  stderr: number
}

export const placeAt = (combined: number, stderr: number): Place => ({
  combined,
  stdout: combined - stderr,
  stderr,
})

/**
 * The kept output from an offset up to the end at the time of opening. Later output is not read; files that are removed before
 * they are reached are skipped. Iterate it once, or close it.
 */
export class OutputReader {
  readonly start: number
  readonly end: number
  /** Where its first segment begins; that is where it starts reading, unless it was opened for the last bytes only. */
  readonly place: Place
  readonly #path: string
  readonly #segments: readonly Segment[]
  readonly #held = new Map<number, number>()
  #isClosed = false

  /** Undefined if nothing is kept. */
  static open(path: string, maxBytes: number): OutputReader | undefined {
    const segments: Segment[] = []
    let end: number | undefined
    for (const number of numbersOf(path).reverse()) {
      const head = withFile(path, number, (file) => {
        const found = headOf(file)
        if (found) end ??= endOf(file, found).end
        return found
      })
      if (!head) continue
      segments.unshift({ number, ...head })
      if (head.start <= end! - maxBytes) break
    }
    return end === undefined ? undefined : new OutputReader(path, segments, end, maxBytes)
  }

  /** `segments`: the kept ones, at least one. */
  constructor(path: string, segments: readonly Segment[], end: number, maxBytes: number) {
    this.#path = path
    this.end = end
    this.start = Math.max(segments[0]!.start, end - maxBytes)
    this.#segments = segments.filter((_, index) => (segments[index + 1]?.start ?? end) > this.start)
    const first = this.#segments[0] ?? segments[0]!
    this.place = placeAt(first.start, first.stderrStart)
    let bytes = 0
    for (const { number } of this.#segments.slice(0, HELD_FILES)) {
      const file = openIfThere(segmentPath(path, number))
      if (file === undefined) continue
      this.#held.set(number, file)
      bytes += fstatSync(file).size
      if (bytes >= HELD_BYTES) break
    }
  }

  *[Symbol.iterator](): Generator<KeptPiece> {
    try {
      for (const segment of this.#segments) yield* this.#piecesOf(segment)
    } finally {
      this.close()
    }
  }

  /** Twice is fine. */
  close(): void {
    this.#isClosed = true
    for (const file of this.#held.values()) closeSync(file)
    this.#held.clear()
  }

  *#piecesOf({ number, start }: Segment): Generator<KeptPiece> {
    if (this.#isClosed) return
    const file = this.#held.get(number) ?? openIfThere(segmentPath(this.#path, number))
    if (file === undefined) return
    this.#held.set(number, file)
    let at = start
    for (const { channel, bytes } of readPieces(file)) {
      if (channel === 'mark') continue
      if (at >= this.end) return
      const skip = Math.max(0, this.start - at)
      const end = at + bytes.length
      if (at + skip < end) yield { channel, bytes: bytes.subarray(skip), at: at + skip, end }
      at = end
      if (this.#isClosed) return
    }
    this.#held.delete(number)
    closeSync(file)
  }
}

export const segmentPath = (path: string, number: number): string =>
  number === 0 ? path : `${path}.${number}`

/** The numbers of the existing segments, in order. */
export function numbersOf(path: string): number[] {
  const name = basename(path)
  return namesIn(dirname(path))
    .filter((found) => found.startsWith(name) && /^(\.[1-9]\d*)?$/.test(found.slice(name.length)))
    .map((found) => Number(found.slice(name.length + 1)))
    .sort((a, b) => a - b)
}

/** Segments with a whole header: a crash may have cut the last one. The first one may just have been removed. */
export function segmentsOf(path: string): Segment[] {
  return numbersOf(path).flatMap((number) => {
    const head = withFile(path, number, headOf)
    return head ? [{ number, ...head }] : []
  })
}

/** Where the last whole piece ends: as an offset in the output, in stderr, and in the file. */
export function endOf(
  file: number,
  { start, stderrStart }: Omit<Segment, 'number'>,
): { end: number; stderrEnd: number; fileBytes: number } {
  let end = start
  let stderrEnd = stderrStart
  let fileBytes = HEADER_BYTES
  for (const { channel, bytes } of readPieces(file)) {
    fileBytes += PIECE_BYTES + bytes.length
    if (channel !== 'mark') end += bytes.length
    if (channel === 'stderr') stderrEnd += bytes.length
  }
  return { end, stderrEnd, fileBytes }
}

/** Undefined if the file does not exist. */
export function withFile<T>(path: string, number: number, work: (file: number) => T): T | undefined {
  const file = openIfThere(segmentPath(path, number))
  if (file === undefined) return undefined
  try {
    return work(file)
  } finally {
    closeSync(file)
  }
}

function headOf(file: number): Omit<Segment, 'number'> | undefined {
  const head = Buffer.alloc(HEADER_BYTES + PIECE_BYTES + MARK_BYTES)
  const got = readSync(file, head, 0, head.length, 0)
  if (got < HEADER_BYTES) return undefined
  const hasMark = got === head.length && head[HEADER_BYTES] === MARK
  const stderrStart = hasMark ? Number(head.readBigUInt64LE(HEADER_BYTES + PIECE_BYTES)) : 0
  return { start: Number(head.readBigUInt64LE()), stderrStart }
}

/** A reader may free each piece after use. */
function* readPieces(file: number): Generator<RawPiece> {
  let have: Buffer = Buffer.alloc(0)
  let filled = 0
  let used = 0
  let at = HEADER_BYTES
  for (;;) {
    const left = filled - used
    const length = left >= PIECE_BYTES ? have.readUInt32LE(used + 1) : undefined
    if (length !== undefined && left >= PIECE_BYTES + length) {
      const begin = used + PIECE_BYTES
      const channel = CHANNELS[have[used]!] ?? 'stdout'
      used = begin + length
      useUp(have.buffer, PIECE_BYTES)
      yield { channel, bytes: have.subarray(begin, used) }
      continue
    }
    const next = Buffer.allocUnsafeSlow(left + READ_BYTES)
    if (left > 0) have.copy(next, 0, used, filled)
    const got = readSync(file, next, left, READ_BYTES, at)
    if (got === 0) return
    at += got
    useUp(have.buffer, left)
    share(next)
    useUp(next.buffer, READ_BYTES - got)
    have = next
    filled = left + got
    used = 0
  }
}

const openIfThere = (path: string) => unlessMissing(() => openSync(path, 'r'))

const namesIn = (directory: string) => unlessMissing(() => readdirSync(directory)) ?? []

function unlessMissing<T>(work: () => T): T | undefined {
  try {
    return work()
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}
