// Frames on the sockets of the guest and the warden. native/common/wire.h draws the layout.

export const HEADER_BYTES = 9
export const MAX_PAYLOAD = 1024 * 1024

export interface Frame {
  type: number
  stream: number
  /** The payload, or one piece of it. It is a view: copy the part that you keep. */
  payload: Buffer
  /** Offset of this piece in the payload; 0 unless the type comes in pieces. */
  at: number
  /** Bytes of the whole payload. */
  length: number
}

export class WireError extends Error {
  override name = 'WireError'
}

/** One frame as bytes. For a large payload, write `frameHeader` and the payload separately: that saves the copy. */
export function encodeFrame(type: number, stream: number, payload: Uint8Array): Buffer {
  const frame = allocateFrame(type, stream, payload.length)
  frame.set(payload, HEADER_BYTES)
  return frame
}

export function frameHeader(type: number, stream: number, length: number): Buffer {
  checkLength(length)
  const header = Buffer.allocUnsafe(HEADER_BYTES)
  writeHeader(header, type, stream, length)
  return header
}

/** A frame with its header; the caller fills the payload. */
export function allocateFrame(type: number, stream: number, length: number): Buffer {
  checkLength(length)
  const frame = Buffer.allocUnsafe(HEADER_BYTES + length)
  writeHeader(frame, type, stream, length)
  return frame
}

function writeHeader(target: Buffer, type: number, stream: number, length: number): void {
  target.writeUInt32LE(length, 0)
  target[4] = type
  target.writeUInt32LE(stream, 5)
}

function checkLength(length: number): void {
  if (length > MAX_PAYLOAD)
    throw new WireError(`a frame of ${length} bytes is over the maximum of ${MAX_PAYLOAD}`)
}

const NO_PIECES: ReadonlyMap<number, number> = new Map()

/**
 * Cuts a byte stream into frames. A frame that lies in one chunk is delivered as a view into it; one that spans chunks is copied
 * together. Types in `pieces` are delivered piece by piece as they come: the first piece has at least as many bytes as the map
 * says, or the whole payload if that is shorter.
 *
 * Holds at most one incomplete frame; a length over the maximum throws WireError before anything is allocated.
 */
export class FrameDecoder {
  readonly #pieces: ReadonlyMap<number, number>
  readonly #head = Buffer.alloc(HEADER_BYTES)
  #headBytes = 0
  #inPayload = false
  #type = 0
  #stream = 0
  #length = 0
  #got = 0
  #gather: Buffer | undefined
  #given = 0

  constructor(options: { pieces?: ReadonlyMap<number, number> } = {}) {
    this.#pieces = options.pieces ?? NO_PIECES
  }

  /** Returns how many bytes of the chunk are in no delivered payload: headers, and bytes that were copied. */
  push(chunk: Buffer, onFrame: (frame: Frame) => void): number {
    let at = 0
    this.#given = 0
    while (at < chunk.length) {
      if (this.#inPayload) at = this.#takePayload(chunk, at, onFrame)
      else {
        at = this.#takeHeader(chunk, at)
        if (this.#headBytes === HEADER_BYTES) at = this.#begin(chunk, at, onFrame)
      }
    }
    return chunk.length - this.#given
  }

  #takeHeader(chunk: Buffer, at: number): number {
    if (this.#headBytes === 0 && chunk.length - at >= HEADER_BYTES) {
      this.#readHeader(chunk, at)
      return at + HEADER_BYTES
    }
    const end = Math.min(chunk.length, at + HEADER_BYTES - this.#headBytes)
    chunk.copy(this.#head, this.#headBytes, at, end)
    this.#headBytes += end - at
    if (this.#headBytes === HEADER_BYTES) this.#readHeader(this.#head, 0)
    return end
  }

  #readHeader(bytes: Buffer, at: number): void {
    this.#length = bytes.readUInt32LE(at)
    this.#type = bytes[at + 4]!
    this.#stream = bytes.readUInt32LE(at + 5)
    this.#headBytes = HEADER_BYTES
    if (this.#length > MAX_PAYLOAD) throw new WireError(`the peer announced a frame of ${this.#length} bytes`)
  }

  #begin(chunk: Buffer, at: number, onFrame: (frame: Frame) => void): number {
    this.#headBytes = 0
    this.#got = 0
    const end = at + this.#length
    if (end <= chunk.length) {
      this.#given += this.#length
      onFrame(this.#frame(chunk.subarray(at, end)))
      return end
    }
    this.#inPayload = true
    const first = this.#pieces.get(this.#type)
    const together = first === undefined ? this.#length : Math.min(first, this.#length)
    this.#gather = chunk.length - at < together ? Buffer.allocUnsafe(together) : undefined
    return at
  }

  #takePayload(chunk: Buffer, at: number, onFrame: (frame: Frame) => void): number {
    const gather = this.#gather
    if (gather) {
      const end = Math.min(chunk.length, at + gather.length - this.#got)
      chunk.copy(gather, this.#got, at, end)
      this.#got += end - at
      if (this.#got < gather.length) return end
      this.#gather = undefined
      this.#got = 0
      this.#deliver(gather, onFrame)
      return end
    }
    const end = Math.min(chunk.length, at + this.#length - this.#got)
    this.#given += end - at
    this.#deliver(chunk.subarray(at, end), onFrame)
    return end
  }

  #deliver(piece: Buffer, onFrame: (frame: Frame) => void): void {
    const frame = this.#frame(piece)
    this.#got += piece.length
    if (this.#got === this.#length) this.#inPayload = false
    onFrame(frame)
  }

  #frame(payload: Buffer): Frame {
    return { type: this.#type, stream: this.#stream, payload, at: this.#got, length: this.#length }
  }
}
