// What a process printed, kept on disk for later readers: its end, in order, with the channel of each piece.
//
// The files PATH, PATH.1, PATH.2 … are segments, each:
//
//   8 bytes     offset of the first byte in it, little-endian
//   then, again and again: 1 byte channel (1 stdout, 2 stderr), 4 bytes length, the bytes
//
// Only the last one is written to. Once the others hold enough, the first is removed as a whole, so nothing is rewritten.
// A piece is written before it is acknowledged to the guest, so after a crash of the server the files say where to
// go on; a piece that the crash cut in half is dropped and sent again by the guest.
import { closeSync, mkdirSync, openSync, rmSync, truncateSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'
import type { OutputChannel } from '../guest/guest.ts'
import {
  endOf,
  HEADER_BYTES,
  type KeptOutput,
  numbersOf,
  openSegments,
  PIECE_BYTES,
  readOutput,
  segmentPath,
} from './output-reader.ts'

/** A log has about so many segments, and none is smaller than this. */
const SEGMENTS = 8
const MIN_SEGMENT_BYTES = 4096

interface Segment {
  number: number
  start: number
}

export class OutputLog {
  readonly #path: string
  readonly #keepBytes: number
  readonly #segmentBytes: number
  readonly #onBytes: (bytes: number) => void
  #segments: Segment[] = []
  #file: number | undefined
  #fileBytes = 0
  #end = 0

  /** The log of a process that has not printed yet. */
  constructor(path: string, keepBytes: number, onBytes: (bytes: number) => void = () => {}) {
    this.#path = path
    this.#onBytes = onBytes
    this.#keepBytes = keepBytes
    this.#segmentBytes = Math.max(Math.ceil(keepBytes / SEGMENTS), MIN_SEGMENT_BYTES)
  }

  /** Goes on with what an earlier server wrote at this path. */
  static recover(path: string, keepBytes: number, onBytes?: (bytes: number) => void): OutputLog {
    const log = new OutputLog(path, keepBytes, onBytes)
    const found = openSegments(path)
    const last = found.at(-1)
    if (!last) return log
    const { end, fileBytes } = endOf(last)
    for (const { file } of found) closeSync(file)
    log.#segments = found.map(({ number, start }) => ({ number, start }))
    log.#end = end
    log.#fileBytes = fileBytes
    const lastPath = segmentPath(path, last.number)
    truncateSync(lastPath, fileBytes)
    log.#file = openSync(lastPath, 'a', 0o600)
    return log
  }

  /** All that was printed so far, kept or not. */
  get end(): number {
    return this.#end
  }

  append(channel: OutputChannel, bytes: Buffer): void {
    const head = Buffer.allocUnsafe(PIECE_BYTES)
    head[0] = channel === 'stdout' ? 1 : 2
    head.writeUInt32LE(bytes.length, 1)
    const isFull = this.#fileBytes > HEADER_BYTES && this.#fileBytes + bytes.length > this.#segmentBytes
    const isNew = this.#file === undefined || isFull
    const piece = Buffer.concat(isNew ? [header(this.#end), head, bytes] : [head, bytes])
    if (isNew) this.#begin()
    writeAll(this.#file!, piece)
    this.#fileBytes += piece.length
    this.#end += bytes.length
    if (isNew) this.#trim()
    this.#onBytes(piece.length)
  }

  /** At most the last `maxBytes`, by whole pieces cut at the front. */
  read(maxBytes: number): KeptOutput {
    return readOutput(this.#path, maxBytes) ?? { pieces: [], start: this.#end, end: this.#end }
  }

  close(): void {
    if (this.#file === undefined) return
    const file = this.#file
    this.#file = undefined
    try {
      closeSync(file)
    } catch {
      // The disk is broken; it is closed all the same.
    }
  }

  /** The file of the next segment. A number that a crash left without a header is taken again. */
  #begin(): void {
    const number = (this.#segments.at(-1)?.number ?? -1) + 1
    const file = create(segmentPath(this.#path, number))
    this.close()
    this.#file = file
    this.#fileBytes = 0
    this.#segments.push({ number, start: this.#end })
  }

  #trim(): void {
    while (this.#segments.length > 1 && this.#end - this.#segments[1]!.start >= this.#keepBytes) {
      const { number } = this.#segments.shift()!
      rmSync(segmentPath(this.#path, number), { force: true })
    }
  }
}

/** All that is kept at a path. */
export function removeOutput(path: string): void {
  for (const number of numbersOf(path)) rmSync(segmentPath(path, number), { force: true })
}

/** The directory is there but for the first process of a sandbox that prints. */
function create(path: string): number {
  try {
    return openSync(path, 'w', 0o600)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
    return openSync(path, 'w', 0o600)
  }
}

function header(start: number): Buffer {
  const bytes = Buffer.allocUnsafe(HEADER_BYTES)
  bytes.writeBigUInt64LE(BigInt(start))
  return bytes
}

function writeAll(file: number, bytes: Buffer): void {
  for (let at = 0; at < bytes.length; ) at += writeSync(file, bytes, at)
}
