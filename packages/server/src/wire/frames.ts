// Frames on the sockets of the guest and the warden. native/common/wire.h draws the layout.

export const HEADER_BYTES = 9
export const MAX_PAYLOAD = 1024 * 1024

export interface Frame {
  type: number
  stream: number
  /** A view into the decoder's memory: copy it to keep it past the callback. */
  payload: Buffer
}

export class WireError extends Error {
  override name = 'WireError'
}

/** One frame as bytes. For large payloads write `frameHeader` and the payload apart and save the copy. */
export function encodeFrame(type: number, stream: number, payload: Uint8Array): Buffer {
  const frame = Buffer.allocUnsafe(HEADER_BYTES + payload.length)
  writeHeader(frame, type, stream, payload.length)
  frame.set(payload, HEADER_BYTES)
  return frame
}

export function frameHeader(type: number, stream: number, length: number): Buffer {
  const header = Buffer.allocUnsafe(HEADER_BYTES)
  writeHeader(header, type, stream, length)
  return header
}

function writeHeader(target: Buffer, type: number, stream: number, length: number): void {
  if (length > MAX_PAYLOAD)
    throw new WireError(`a frame of ${length} bytes is over the maximum of ${MAX_PAYLOAD}`)
  target.writeUInt32LE(length, 0)
  target[4] = type
  target.writeUInt32LE(stream, 5)
}

/**
 * Cuts a byte stream into frames. Holds at most one incomplete frame; a length over the maximum throws WireError
 * before anything of that size is allocated.
 */
export class FrameDecoder {
  #head: Buffer = Buffer.alloc(0)
  #parts: Buffer[] = []
  #missing = 0

  push(chunk: Buffer, onFrame: (frame: Frame) => void): void {
    if (this.#missing > 0) {
      if (chunk.length < this.#missing) {
        this.#parts.push(chunk)
        this.#missing -= chunk.length
        return
      }
      const whole = Buffer.concat([...this.#parts, chunk.subarray(0, this.#missing)])
      const rest = chunk.subarray(this.#missing)
      this.#parts = []
      this.#missing = 0
      onFrame(readFrame(whole, 0))
      chunk = rest
    } else if (this.#head.length > 0) {
      chunk = Buffer.concat([this.#head, chunk])
      this.#head = Buffer.alloc(0)
    }
    this.#cut(chunk, onFrame)
  }

  #cut(chunk: Buffer, onFrame: (frame: Frame) => void): void {
    let at = 0
    while (chunk.length - at >= HEADER_BYTES) {
      const length = chunk.readUInt32LE(at)
      if (length > MAX_PAYLOAD) throw new WireError(`the peer announced a frame of ${length} bytes`)
      const end = at + HEADER_BYTES + length
      if (end > chunk.length) {
        this.#parts = [chunk.subarray(at)]
        this.#missing = end - chunk.length
        return
      }
      onFrame(readFrame(chunk, at))
      at = end
    }
    this.#head = chunk.subarray(at)
  }
}

function readFrame(bytes: Buffer, at: number): Frame {
  const length = bytes.readUInt32LE(at)
  return {
    type: bytes[at + 4]!,
    stream: bytes.readUInt32LE(at + 5),
    payload: bytes.subarray(at + HEADER_BYTES, at + HEADER_BYTES + length),
  }
}
