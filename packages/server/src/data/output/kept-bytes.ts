// Output that waits to be sent in an answer: a little in memory, the rest in an unlinked file that is read piece by piece.
import { closeSync, mkdirSync, openSync, readSync, unlinkSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'
import { StringDecoder } from 'node:string_decoder'
import type { Hold } from '../../control/held.ts'
import { ByteBuffer } from '../../lib/byte-buffer.ts'

/** Bytes in memory. */
const MEMORY_BYTES = 64 * 1024
/** A multiple of three, so that pieces of base64 are whole; small, so that their text is young garbage even if JSON escapes it. */
const PIECE_BYTES = 12 * 1024

/** An answer in which long texts and lists may be replaced by ones that are produced piece by piece. */
export type Told<T> = T extends string
  ? T | LongText
  : T extends (infer Item)[]
    ? Told<Item>[] | Iterable<Told<Item>>
    : T extends object
      ? { [Key in keyof T]: Told<T[Key]> }
      : T

interface KeptBytesOptions {
  /** Path of the file until it is unlinked. */
  path: string
  /** Counts the bytes in the file. */
  disk: Hold
  /** False while the disk is too full to write. */
  hasRoom(): boolean
}

export class KeptBytes implements Disposable {
  readonly #options: KeptBytesOptions
  /** The bytes after those in the file. */
  readonly #end = new ByteBuffer()
  #file: number | undefined
  #fileBytes = 0
  #isFull = false
  /** The file could not be written, or the disk was too full to try. */
  isDiskFull = false

  constructor(options: KeptBytesOptions) {
    this.#options = options
  }

  get length(): number {
    return this.#fileBytes + this.#end.length
  }

  /** False: there is no room for these bytes or any later ones. */
  append(bytes: Buffer): boolean {
    if (this.#isFull) return false
    if (this.#end.length + bytes.length <= MEMORY_BYTES) {
      this.#end.append(bytes)
      return true
    }
    const { disk, hasRoom } = this.#options
    this.isDiskFull = !hasRoom()
    // Full: the disk, or this sandbox's share of it.
    this.#isFull = this.isDiskFull || !disk.take(this.#end.length + bytes.length) || !this.#write(bytes)
    return !this.#isFull
  }

  #write(bytes: Buffer): boolean {
    try {
      this.#file ??= openNameless(this.#options.path)
      writeAll(this.#file, this.#end.bytes, this.#fileBytes)
      writeAll(this.#file, bytes, this.length)
    } catch {
      this.isDiskFull = true
      return false
    }
    this.#fileBytes = this.length + bytes.length
    this.#end.clear()
    return true
  }

  /** As a string if it is short, else as a LongText. */
  text(encoding: 'utf8' | 'base64'): string | LongText {
    if (this.#file === undefined) return this.#end.bytes.toString(encoding)
    return new LongText(this, encoding)
  }

  /** Each piece overwrites the one before. */
  *pieces(start = 0, end = this.length): Generator<Buffer> {
    const piece = Buffer.allocUnsafe(Math.min(PIECE_BYTES, end - start))
    for (let at = start; at < end; ) {
      let filled = 0
      while (filled < piece.length && at < end) {
        const got = this.#read(piece.subarray(filled, filled + end - at), at)
        if (got === 0) return
        filled += got
        at += got
      }
      yield piece.subarray(0, filled)
    }
  }

  #read(into: Buffer, at: number): number {
    if (at >= this.#fileBytes) return this.#end.bytes.copy(into, 0, at - this.#fileBytes)
    const most = Math.min(into.length, this.#fileBytes - at)
    return this.#file === undefined ? 0 : readSync(this.#file, into, 0, most, at)
  }

  /** Twice is fine. */
  [Symbol.dispose](): void {
    if (this.#file !== undefined) closeSync(this.#file)
    this.#file = undefined
    this.#isFull = true
    this.#options.disk[Symbol.dispose]()
  }
}

/** A text that is produced piece by piece. The sender of the answer disposes of it. */
export class LongText implements Disposable {
  readonly #bytes: KeptBytes
  readonly #encoding: 'utf8' | 'base64'

  constructor(bytes: KeptBytes, encoding: 'utf8' | 'base64') {
    this.#bytes = bytes
    this.#encoding = encoding
  }

  *[Symbol.iterator](): Generator<string> {
    const decoder = new StringDecoder(this.#encoding)
    for (const piece of this.#bytes.pieces()) yield decoder.write(piece)
    yield decoder.end()
  }

  [Symbol.dispose](): void {
    this.#bytes[Symbol.dispose]()
  }
}

/** Disposes of everything disposable in an answer. */
export function release(answer: unknown): void {
  if (typeof answer !== 'object' || answer === null) return
  if (Symbol.dispose in answer) (answer as Disposable)[Symbol.dispose]()
  else if (Array.isArray(answer)) for (const item of answer) release(item)
  else for (const item of Object.values(answer)) release(item)
}

export function writeAll(file: number, bytes: Buffer, position: number): void {
  for (let at = 0; at < bytes.length; ) at += writeSync(file, bytes, at, bytes.length - at, position + at)
}

function openNameless(path: string): number {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  const file = openSync(path, 'wx+', 0o600)
  unlinkSync(path)
  return file
}
