// The last output of a process, kept on disk for later readers, in order and with the channel of each piece.
//
// The files PATH, PATH.1, PATH.2 … are segments, each:
//
//   8 bytes     offset of the first byte in it, little-endian
//   then for each piece: 1 byte channel (1 stdout, 2 stderr), 4 bytes length, the bytes
//
// The first piece of a segment is a mark (channel 3): its bytes are the offset in stderr alone, so that a reader of one channel
// knows its place however much was removed before.
//
// Only the last segment is written to. Once the others hold enough, the first one is removed, so nothing is rewritten. A piece is
// written before it is acknowledged to the guest: after a crash of the server the files say where to continue, and a piece that
// the crash cut in half is dropped and sent again by the guest.
import { closeSync, mkdirSync, openSync, rmSync, truncateSync } from 'node:fs'
import { dirname } from 'node:path'
import type { OutputChannel } from '../../guest/guest.ts'
import { writeAll } from './kept-bytes.ts'
import {
  endOf,
  HEADER_BYTES,
  MARK,
  MARK_BYTES,
  numbersOf,
  OutputReader,
  PIECE_BYTES,
  type Place,
  placeAt,
  type Segment,
  segmentPath,
  segmentsOf,
  withFile,
} from './output-reader.ts'

/** A log has about so many segments, unless they would be too small, or too large to scan quickly. */
const SEGMENTS = 8
const MIN_SEGMENT_BYTES = 4096
const MAX_SEGMENT_BYTES = 1024 * 1024
/** Segments beyond those that are kept, so that a new reader does not miss its first ones. */
const SPARE_SEGMENTS = 2
const COPIED_BYTES = 4096
/** The header of a segment and its mark. */
const HEAD_BYTES = HEADER_BYTES + PIECE_BYTES + MARK_BYTES

export interface LogRoom {
  /** False while the disk is too full to write. */
  hasRoom(): boolean
  wrote(bytes: number): void
}

const ANY_ROOM: LogRoom = { hasRoom: () => true, wrote: () => {} }

export class OutputLog {
  readonly #path: string
  readonly #keepBytes: number
  readonly #segmentBytes: number
  readonly #room: LogRoom
  #segments: Segment[] = []
  #file: number | undefined
  #fileBytes = 0
  #end = 0
  #stderrEnd = 0

  /** The log of a process that has printed nothing yet. */
  constructor(path: string, keepBytes: number, room: LogRoom = ANY_ROOM) {
    this.#path = path
    this.#room = room
    this.#keepBytes = keepBytes
    const share = Math.ceil(keepBytes / SEGMENTS)
    this.#segmentBytes = Math.min(Math.max(share, MIN_SEGMENT_BYTES), MAX_SEGMENT_BYTES)
  }

  /** Continues the log that an earlier server wrote at this path. */
  static recover(path: string, keepBytes: number, room?: LogRoom): OutputLog {
    const log = new OutputLog(path, keepBytes, room)
    log.#segments = segmentsOf(path)
    const last = log.#segments.at(-1)
    if (!last) return log
    const found = withFile(path, last.number, (file) => endOf(file, last))
    if (!found) return log
    log.#end = found.end
    log.#stderrEnd = found.stderrEnd
    log.#fileBytes = found.fileBytes
    const lastPath = segmentPath(path, last.number)
    truncateSync(lastPath, found.fileBytes)
    log.#file = openSync(lastPath, 'r+')
    return log
  }

  /** Bytes printed so far, kept or not. */
  get end(): number {
    return this.#end
  }

  /** The same for each channel. */
  get place(): Place {
    return placeAt(this.#end, this.#stderrEnd)
  }

  /** On a full disk these bytes and all kept ones are dropped; the process goes on, and attached clients still get its output. */
  append(channel: OutputChannel, bytes: Buffer): void {
    if (!this.#room.hasRoom() || !this.#isWritten(channel, bytes)) this.#forget()
    this.#end += bytes.length
    if (channel === 'stderr') this.#stderrEnd += bytes.length
    this.#trim()
  }

  /** Output up to this offset is gone: drops what is kept and continues at the offset. It counts as stdout, whatever it was. */
  skipTo(offset: number): void {
    if (offset <= this.#end) return
    this.#forget()
    this.#end = offset
  }

  /** False: the disk is full. */
  #isWritten(channel: OutputChannel, bytes: Buffer): boolean {
    try {
      this.#write(channel, bytes)
      return true
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error
      return false
    }
  }

  #write(channel: OutputChannel, bytes: Buffer): void {
    const head = Buffer.allocUnsafe(PIECE_BYTES)
    head[0] = channel === 'stdout' ? 1 : 2
    head.writeUInt32LE(bytes.length, 1)
    const isFull = this.#fileBytes > HEAD_BYTES && this.#fileBytes + bytes.length > this.#segmentBytes
    if (this.#file === undefined || isFull) this.#begin()
    // Overwrites the rest of a failed write.
    writePiece(this.#file!, head, bytes, this.#fileBytes)
    const pieceBytes = head.length + bytes.length
    this.#fileBytes += pieceBytes
    this.#room.wrote(pieceBytes)
  }

  /** The last `maxBytes` of the kept output; undefined when nothing is kept. */
  open(maxBytes: number): OutputReader | undefined {
    if (this.#segments.length === 0) return undefined
    return new OutputReader(this.#path, this.#segments, this.#end, maxBytes)
  }

  /** Removes this segment and those before it. If it is the last one, a new one begins at its end, to keep the offset. */
  drop(number: number): void {
    const isLast = this.#segments.at(-1)?.number === number
    if (isLast && this.#file === undefined) return
    if (isLast) this.#begin()
    while (this.#segments.length > 1 && this.#segments[0]!.number <= number) this.#removeFirst()
  }

  close(): void {
    if (this.#file === undefined) return
    const file = this.#file
    this.#file = undefined
    try {
      closeSync(file)
    } catch {
      // The disk is broken; the file is closed anyway.
    }
  }

  /** Begins the next segment. A file that a crash left without a header is overwritten. */
  #begin(): void {
    const number = (this.#segments.at(-1)?.number ?? -1) + 1
    const file = create(segmentPath(this.#path, number))
    try {
      writeAll(file, segmentHead(this.#end, this.#stderrEnd), 0)
    } catch (error) {
      closeSync(file)
      throw error
    }
    this.close()
    this.#file = file
    this.#fileBytes = HEAD_BYTES
    this.#segments.push({ number, start: this.#end, stderrStart: this.#stderrEnd })
  }

  #forget(): void {
    this.close()
    this.#fileBytes = 0
    while (this.#segments.length > 0) this.#removeFirst()
  }

  #trim(): void {
    const first = 1 + SPARE_SEGMENTS
    while (this.#segments.length > first && this.#end - this.#segments[first]!.start >= this.#keepBytes)
      this.#removeFirst()
  }

  #removeFirst(): void {
    const { number } = this.#segments.shift()!
    rmSync(segmentPath(this.#path, number), { force: true })
  }
}

/** Removes all segments at a path. */
export function removeOutput(path: string): void {
  for (const number of numbersOf(path)) rmSync(segmentPath(path, number), { force: true })
}

/** Creates the directory for the first process of a sandbox that prints. */
function create(path: string): number {
  try {
    return openSync(path, 'w', 0o600)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
    return openSync(path, 'w', 0o600)
  }
}

function segmentHead(start: number, stderrStart: number): Buffer {
  const bytes = Buffer.allocUnsafe(HEAD_BYTES)
  bytes.writeBigUInt64LE(BigInt(start))
  bytes[HEADER_BYTES] = MARK
  bytes.writeUInt32LE(MARK_BYTES, HEADER_BYTES + 1)
  bytes.writeBigUInt64LE(BigInt(stderrStart), HEADER_BYTES + PIECE_BYTES)
  return bytes
}

/** One write for a small piece; for a large one a copy costs more than a second write. */
function writePiece(file: number, head: Buffer, bytes: Buffer, position: number): void {
  const parts = bytes.length < COPIED_BYTES ? [Buffer.concat([head, bytes])] : [head, bytes]
  let at = position
  for (const part of parts) {
    writeAll(file, part, at)
    at += part.length
  }
}
