import type { IncomingMessage } from 'node:http'
import { clientGone } from './request.ts'

const DONE = { done: true, value: undefined } as const

/** The bytes of a request, at the reader's pace. Leaving the iteration keeps the connection open. */
export class BodyStream implements AsyncIterableIterator<Buffer> {
  readonly #incoming: IncomingMessage
  readonly #chunks: Buffer[] = []
  #waiting: PromiseWithResolvers<IteratorResult<Buffer>> | undefined
  #isOver = false
  #failure: { error: unknown } | undefined

  constructor(incoming: IncomingMessage) {
    this.#incoming = incoming
    incoming.pause()
    incoming
      .on('data', this.#onData)
      .on('end', this.#onEnd)
      .on('error', this.#onError)
      .on('close', this.#onClose)
    if (incoming.destroyed) this.#onClose()
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  next(): Promise<IteratorResult<Buffer>> {
    const chunk = this.#chunks.shift()
    if (chunk) return Promise.resolve({ done: false, value: chunk })
    if (this.#failure) return Promise.reject(this.#failure.error)
    if (this.#isOver) return Promise.resolve(DONE)
    this.#waiting ??= Promise.withResolvers()
    this.#incoming.resume()
    return this.#waiting.promise
  }

  return(): Promise<IteratorResult<Buffer>> {
    if (!this.#isOver) this.#incoming.pause()
    this.#finish()
    this.#chunks.length = 0
    return Promise.resolve(DONE)
  }

  readonly #onData = (chunk: Buffer): void => {
    if (this.#waiting) {
      this.#waiting.resolve({ done: false, value: chunk })
      this.#waiting = undefined
    } else {
      this.#chunks.push(chunk)
      this.#incoming.pause()
    }
  }

  readonly #onEnd = (): void => this.#finish()

  readonly #onError = (error: unknown): void => {
    this.#failure ??= { error }
    this.#finish()
  }

  readonly #onClose = (): void => {
    if (!this.#isOver) this.#onError(clientGone())
  }

  #finish(): void {
    this.#isOver = true
    const incoming = this.#incoming
    incoming.off('data', this.#onData).off('end', this.#onEnd).off('error', this.#onError)
    incoming.off('close', this.#onClose)
    if (this.#failure) this.#waiting?.reject(this.#failure.error)
    else this.#waiting?.resolve(DONE)
    this.#waiting = undefined
  }
}
