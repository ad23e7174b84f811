// Reads what output-log.ts has written, piece by piece: however much is kept, little of it is in memory.
import { closeSync, openSync, readdirSync, readSync } from 'node:fs'
import { basename, dirname } from 'node:path'
import type { OutputChannel } from '../guest/guest.ts'

export const HEADER_BYTES = 8
export const PIECE_BYTES = 5
const READ_BYTES = 64 * 1024

export interface OutputPiece {
  channel: OutputChannel
  bytes: Buffer
}

export interface KeptOutput {
  pieces: OutputPiece[]
  /** Offset of the first byte kept; above 0 the beginning is gone. */
  start: number
  end: number
}

export interface OpenSegment {
  number: number
  /** Offset of its first byte. */
  start: number
  file: number
}

/**
 * What is kept from an offset on, up to what was printed when it was opened. The files are held open: what is removed or
 * appended meanwhile changes nothing. Read once, or closed.
 */
export class OutputReader {
  readonly start: number
  readonly end: number
  #segments: OpenSegment[]

  /** Undefined when nothing is kept. */
  static open(path: string, maxBytes: number): OutputReader | undefined {
    const segments = openSegments(path)
    const last = segments.at(-1)
    return last && new OutputReader(segments, endOf(last).end, maxBytes)
  }

  private constructor(segments: OpenSegment[], end: number, maxBytes: number) {
    this.#segments = segments
    this.end = end
    this.start = Math.max(segments[0]!.start, end - maxBytes)
  }

  *[Symbol.iterator](): Generator<OutputPiece> {
    try {
      for (const [index, segment] of this.#segments.entries()) {
        const next = this.#segments[index + 1]
        if (!next || next.start > this.start) yield* this.#piecesOf(segment)
      }
    } finally {
      this.close()
    }
  }

  /** Twice is fine. */
  close(): void {
    for (const { file } of this.#segments) closeSync(file)
    this.#segments = []
  }

  *#piecesOf(segment: OpenSegment): Generator<OutputPiece> {
    let at = segment.start
    for (const { channel, bytes } of readPieces(segment.file)) {
      if (at >= this.end) return
      const skip = Math.max(0, this.start - at)
      if (skip < bytes.length) yield { channel, bytes: bytes.subarray(skip) }
      at += bytes.length
    }
  }
}

/** At most the last `maxBytes`, in memory. Undefined when nothing is kept. */
export function readOutput(path: string, maxBytes: number): KeptOutput | undefined {
  const reader = OutputReader.open(path, maxBytes)
  return reader && { start: reader.start, end: reader.end, pieces: [...reader] }
}

export const segmentPath = (path: string, number: number): string =>
  number === 0 ? path : `${path}.${number}`

/** Of the segments that are there, in order. */
export function numbersOf(path: string): number[] {
  const name = basename(path)
  return namesIn(dirname(path))
    .filter((found) => found.startsWith(name) && /^(\.[1-9]\d*)?$/.test(found.slice(name.length)))
    .map((found) => Number(found.slice(name.length + 1)))
    .sort((a, b) => a - b)
}

/** Those with a whole header: a crash may have cut off the last one's. The first may just have been removed. */
export function openSegments(path: string): OpenSegment[] {
  const segments: OpenSegment[] = []
  for (const number of numbersOf(path)) {
    const file = openIfThere(segmentPath(path, number))
    if (file === undefined) continue
    const header = Buffer.allocUnsafe(HEADER_BYTES)
    if (readSync(file, header, 0, HEADER_BYTES, 0) < HEADER_BYTES) closeSync(file)
    else segments.push({ number, start: Number(header.readBigUInt64LE()), file })
  }
  return segments
}

/** Where its last whole piece ends: in all that was printed, and in the file. */
export function endOf({ file, start }: OpenSegment): { end: number; fileBytes: number } {
  let end = start
  let fileBytes = HEADER_BYTES
  for (const { bytes } of readPieces(file)) {
    end += bytes.length
    fileBytes += PIECE_BYTES + bytes.length
  }
  return { end, fileBytes }
}

function* readPieces(file: number): Generator<OutputPiece> {
  let have: Buffer = Buffer.alloc(0)
  let at = HEADER_BYTES
  for (;;) {
    const length = have.length >= PIECE_BYTES ? have.readUInt32LE(1) : undefined
    if (length !== undefined && have.length >= PIECE_BYTES + length) {
      const bytes = have.subarray(PIECE_BYTES, PIECE_BYTES + length)
      yield { channel: have[0] === 2 ? 'stderr' : 'stdout', bytes }
      have = have.subarray(PIECE_BYTES + length)
      continue
    }
    const more = Buffer.allocUnsafe(READ_BYTES)
    const got = readSync(file, more, 0, READ_BYTES, at)
    if (got === 0) return
    at += got
    have = Buffer.concat([have, more.subarray(0, got)])
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
