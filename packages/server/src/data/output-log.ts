// What a process printed, kept on disk for later readers: its end, in order, with the channel of each piece.
//
//   8 bytes     offset of the first byte kept, little-endian
//   then, again and again: 1 byte channel (1 stdout, 2 stderr), 4 bytes length, the bytes
//
// A piece is written before it is acknowledged to the guest, so after a crash of the server the file says where to
// go on; a piece that the crash cut in half is dropped and sent again by the guest.
import { closeSync, mkdirSync, openSync, readFileSync, renameSync, truncateSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'
import type { OutputChannel } from '../guest/guest.ts'

const HEADER_BYTES = 8
const PIECE_BYTES = 5

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

export class OutputLog {
  readonly #path: string
  readonly #keepBytes: number
  #file: number | undefined
  #fileBytes = 0
  #end = 0

  /** The log of a process that has not printed yet. */
  constructor(path: string, keepBytes: number) {
    this.#path = path
    this.#keepBytes = keepBytes
  }

  /** Goes on with what an earlier server wrote at this path. */
  static recover(path: string, keepBytes: number): OutputLog {
    const log = new OutputLog(path, keepBytes)
    const found = readWhole(path)
    if (!found) return log
    if (found.validBytes < found.fileBytes) truncateSync(path, found.validBytes)
    log.#end = found.end
    log.#fileBytes = found.validBytes
    log.#file = openSync(path, 'a', 0o600)
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
    const parts = this.#file === undefined ? [header(0), head, bytes] : [head, bytes]
    const piece = Buffer.concat(parts)
    this.#file ??= create(this.#path)
    writeAll(this.#file, piece)
    this.#fileBytes += piece.length
    this.#end += bytes.length
    if (this.#fileBytes > 2 * this.#keepBytes + HEADER_BYTES) this.#shorten()
  }

  /** At most the last `keepBytes`, by whole pieces cut at the front. */
  read(): KeptOutput {
    return readOutput(this.#path, this.#keepBytes) ?? { pieces: [], start: this.#end, end: this.#end }
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

  #shorten(): void {
    const { pieces, start } = this.read()
    const parts = [header(start)]
    for (const { channel, bytes } of pieces) {
      const head = Buffer.allocUnsafe(PIECE_BYTES)
      head[0] = channel === 'stdout' ? 1 : 2
      head.writeUInt32LE(bytes.length, 1)
      parts.push(head, bytes)
    }
    const whole = Buffer.concat(parts)
    const file = openSync(`${this.#path}.new`, 'w', 0o600)
    writeAll(file, whole)
    renameSync(`${this.#path}.new`, this.#path)
    this.close()
    this.#file = file
    this.#fileBytes = whole.length
  }
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

/** Undefined when nothing was printed. */
export function readOutput(path: string, keepBytes: number): KeptOutput | undefined {
  const found = readWhole(path)
  if (!found) return undefined
  const wantedStart = Math.max(found.start, found.end - keepBytes)
  const pieces: OutputPiece[] = []
  let at = found.start
  for (const { channel, bytes } of found.pieces) {
    const skip = Math.max(0, wantedStart - at)
    if (skip < bytes.length) pieces.push({ channel, bytes: bytes.subarray(skip) })
    at += bytes.length
  }
  return { pieces, start: wantedStart, end: found.end }
}

function readWhole(path: string): (KeptOutput & { validBytes: number; fileBytes: number }) | undefined {
  let content: Buffer
  try {
    content = readFileSync(path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
  if (content.length < HEADER_BYTES) return undefined
  const start = Number(content.readBigUInt64LE(0))
  const pieces: OutputPiece[] = []
  let at = HEADER_BYTES
  let end = start
  while (content.length - at >= PIECE_BYTES) {
    const length = content.readUInt32LE(at + 1)
    if (content.length - at - PIECE_BYTES < length) break
    const bytes = content.subarray(at + PIECE_BYTES, at + PIECE_BYTES + length)
    pieces.push({ channel: content[at] === 2 ? 'stderr' : 'stdout', bytes })
    at += PIECE_BYTES + length
    end += length
  }
  return { pieces, start, end, validBytes: at, fileBytes: content.length }
}

function header(start: number): Buffer {
  const bytes = Buffer.allocUnsafe(HEADER_BYTES)
  bytes.writeBigUInt64LE(BigInt(start))
  return bytes
}

function writeAll(file: number, bytes: Buffer): void {
  for (let at = 0; at < bytes.length; ) at += writeSync(file, bytes, at)
}
