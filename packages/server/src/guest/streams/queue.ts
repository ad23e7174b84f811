import { share, useUp } from '../../wire/chunks.ts'

/** A piece this large is kept as the view it is; smaller ones are copied together. */
const VIEW_BYTES = 16 * 1024
const FIRST_OWN_BYTES = 1024
const MAX_OWN_BYTES = 64 * 1024

interface Part {
  buffer: Buffer
  start: number
  end: number
  /** Made here: bytes may be added behind `end`. */
  own: boolean
}

/**
 * Received bytes until somebody takes them. A piece is a view into the chunk that the socket read, which stays in
 * memory as long as any piece of it is held: so small pieces are copied, and what is held is at most a few times
 * `bytes` however the peer cuts its frames.
 */
export class ByteQueue {
  bytes = 0
  #parts: Part[] = []

  /** True: the piece itself is kept; else it was copied. */
  push(piece: Buffer): boolean {
    if (piece.length === 0) return false
    this.bytes += piece.length
    if (piece.length >= VIEW_BYTES) {
      this.#parts.push({ buffer: piece, start: 0, end: piece.length, own: false })
      return true
    }
    let at = 0
    while (at < piece.length) {
      const part = this.#partWithRoom(piece.length - at)
      const copied = piece.copy(part.buffer, part.end, at)
      part.end += copied
      at += copied
    }
    return false
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
      // Nobody is given what was not filled.
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
