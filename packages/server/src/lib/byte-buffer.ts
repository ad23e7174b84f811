// Collects bytes in one growing buffer: a million pieces of one byte take a megabyte.
const FIRST_BYTES = 4096

export class ByteBuffer {
  #bytes = Buffer.alloc(0)
  #length = 0

  append(bytes: Uint8Array): void {
    const wanted = this.#length + bytes.length
    if (wanted > this.#bytes.length) {
      const larger = Buffer.allocUnsafe(Math.max(wanted, this.#bytes.length * 2, FIRST_BYTES))
      larger.set(this.bytes)
      this.#bytes = larger
    }
    this.#bytes.set(bytes, this.#length)
    this.#length = wanted
  }

  clear(): void {
    this.#length = 0
  }

  /** Drops the first bytes. Empty afterwards: the memory goes too. */
  dropFirst(count: number): void {
    this.#bytes.copyWithin(0, count, this.#length)
    this.#length -= count
    if (this.#length === 0) this.#bytes = Buffer.alloc(0)
  }

  get length(): number {
    return this.#length
  }

  get bytes(): Buffer {
    return this.#bytes.subarray(0, this.#length)
  }
}
