import { free, share, useUp } from '../../wire/chunks.ts'

/** A piece this large is kept as the view it is; smaller ones are copied together. */
const VIEW_BYTES = 16 * 1024
const FIRST_OWN_BYTES = 1024
const MAX_OWN_BYTES = 64 * 1024

interface Part {
  buffer: Buffer
  start: number
  end: number
  /** Allocated here: bytes may be added behind `end`. */
  own: boolean
}

/**
 * Received bytes until they are taken. A piece is a view into the chunk that the socket read, and keeps all of that chunk in
 * memory. So small pieces are copied: the memory held is at most a few times `bytes`, however the peer cuts its frames.
 */
export class ByteQueue {
  bytes = 0
  #parts: Part[] = []

  /** Takes the piece over: a small one is copied and freed. Returns its length. */
  push(piece: Buffer): number {
    const { length } = piece
    if (length === 0) return 0
    this.bytes += length
    if (length >= VIEW_BYTES) {
      this.#parts.push({ buffer: piece, start: 0, end: length, own: false })
      return length
    }
    let at = 0
    while (at < length) {
      const part = this.#partWithRoom(length - at)
      const copied = piece.copy(part.buffer, part.end, at)
      part.end += copied
      at += copied
    }
    return free(piece)
  }

  /** The next bytes, at most `max`; undefined when there are none. */
  take(max = Number.POSITIVE_INFINITY): Buffer | undefined {
    const part = this.#parts[0]
    if (!part) return undefined
    const end = Math.min(part.end, part.start + max)
    const bytes = part.buffer.subarray(part.start, end)
    part.start = end
    if (part.start === part.end) {
      this.#parts.shift()
      if (part.own) useUp(part.buffer.buffer, part.buffer.length - part.end)
    }
    this.bytes -= bytes.length
    return bytes
  }

  clear(): void {
    this.#parts = []
    this.bytes = 0
  }

  #partWithRoom(wanted: number): Part {
    const last = this.#parts.at(-1)
    if (last?.own && last.end < last.buffer.length) return last
    const size = last?.own ? last.buffer.length * 2 : FIRST_OWN_BYTES
    const bytes = Math.min(Math.max(size, wanted), MAX_OWN_BYTES)
    const part = { buffer: Buffer.allocUnsafeSlow(bytes), start: 0, end: 0, own: true }
    share(part.buffer)
    this.#parts.push(part)
    return part
  }
}
