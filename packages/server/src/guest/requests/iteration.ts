// A request whose answer the caller iterates at its own pace: what downloads and watches share.
import { Exchange } from './request.ts'

export abstract class Iteration<T, Item> extends Exchange<T> implements AsyncIterableIterator<Item> {
  #isOver = false
  #error: { reason: unknown } | undefined
  #reader: PromiseWithResolvers<IteratorResult<Item>> | undefined

  /** The next item that waits for the reader. */
  protected abstract take(): Item | undefined
  /** Drops the items that wait. */
  protected abstract clear(): void

  /** Gives the item to the reader if it waits for one; else the answer is false. */
  protected give(value: Item): boolean {
    if (!this.#reader) return false
    this.#reader.resolve({ done: false, value })
    this.#reader = undefined
    return true
  }

  /** Nothing comes after what waits. */
  protected end(): void {
    this.#isOver = true
    this.#reader?.resolve({ done: true, value: undefined })
    this.#reader = undefined
  }

  protected override onFail(reason: unknown): void {
    this.#error ??= { reason }
    this.#reader?.reject(reason)
    this.#reader = undefined
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  next(): Promise<IteratorResult<Item>> {
    const value = this.take()
    if (value !== undefined) return Promise.resolve({ done: false, value })
    if (this.#isOver) return Promise.resolve({ done: true, value: undefined })
    if (this.#error) return Promise.reject(this.#error.reason)
    if (this.#reader) return Promise.reject(new TypeError('the answer is being read already'))
    this.#reader = Promise.withResolvers()
    return this.#reader.promise
  }

  /** The reader leaves before the end. */
  return(): Promise<IteratorResult<Item>> {
    this.connection?.reset(this.stream)
    this.finish()
    this.clear()
    this.end()
    return Promise.resolve({ done: true, value: undefined })
  }
}
