import { IsletError } from '@islet/contract'
import type { Chunks } from '../../wire/chunks.ts'

/** A file that grows while it is read ends where it was announced to; one that shrinks is an error, not a short answer. */
export class Exactly implements Chunks<Buffer>, AsyncIterableIterator<Buffer> {
  readonly #body: Chunks<Buffer>
  readonly #chunks: AsyncIterator<Buffer>
  #left: number

  constructor(body: Chunks<Buffer>, length: number) {
    this.#body = body
    this.#chunks = body[Symbol.asyncIterator]()
    this.#left = length
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  async next(): Promise<IteratorResult<Buffer>> {
    if (this.#left === 0) return this.return()
    const { done, value: chunk } = await this.#chunks.next()
    if (done) throw new IsletError('conflict', 'The file became shorter while it was read.')
    const piece = chunk.length > this.#left ? chunk.subarray(0, this.#left) : chunk
    this.#left -= piece.length
    return { done: false, value: piece }
  }

  async return(): Promise<IteratorResult<Buffer>> {
    await this.#chunks.return?.()
    return { done: true, value: undefined }
  }

  release(chunk: Buffer): void {
    this.#body.release?.(chunk)
  }
}
