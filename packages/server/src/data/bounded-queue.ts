// Messages that wait for one client. A client that is too slow loses what waits and gets an overflow; it slows nobody else.

import { Wakeup } from '../lib/wakeup.ts'

interface QueueOptions<Message> {
  maxMessages: number
  maxBytes: number
  /** Its approximate size in memory. */
  sizeOf(message: Message): number
  /** Replaces the messages that were lost. */
  overflow: Message
  /** A limit for several queues together. */
  shared?: Budget
}

/** Bytes that may wait in several queues together. */
export class Budget {
  left: number

  constructor(bytes: number) {
    this.left = bytes
  }
}

export class BoundedQueue<Message> implements AsyncIterable<Message> {
  /** A reader has begun. */
  isRead = false
  isClosed = false
  readonly #options: QueueOptions<Message>
  #waiting: Message[] = []
  /** Messages that wait, and those of the reader's current batch. */
  #count = 0
  #bytes = 0
  #end: { error?: unknown } | undefined
  readonly #news = new Wakeup()

  constructor(options: QueueOptions<Message>) {
    this.#options = options
  }

  push(message: Message): void {
    if (this.isClosed || this.#end) return
    const { maxMessages, maxBytes, sizeOf, shared } = this.#options
    const bytes = sizeOf(message)
    const isFull = this.#count >= maxMessages || this.#bytes + bytes > maxBytes
    if (isFull || (shared && bytes > shared.left)) this.#overflow()
    else this.#add(message)
    this.#news.wake()
  }

  /** No more messages: the iteration ends after those that wait, with the error if one is given. */
  end(error?: unknown): void {
    this.#end ??= { error }
    this.#news.wake()
  }

  /** The reader has gone. */
  close(): void {
    if (!this.isClosed) this.#take(-this.#bytes)
    this.isClosed = true
    this.#waiting = []
    this.#news.wake()
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Message> {
    this.isRead = true
    while (!this.isClosed) {
      const batch = this.#waiting
      this.#waiting = []
      for (const message of batch) {
        if (this.isClosed) return
        yield message
        this.#remove(message)
      }
      if (this.isClosed || this.#waiting.length > 0) continue
      if (this.#end) {
        if (this.#end.error !== undefined) throw this.#end.error
        return
      }
      await this.#news.wait()
    }
  }

  #overflow(): void {
    const { overflow } = this.#options
    // The overflow message waits already, and nothing came after it.
    if (this.#waiting.length === 1 && this.#waiting[0] === overflow) return
    for (const message of this.#waiting) this.#remove(message)
    this.#waiting = []
    this.#add(overflow)
  }

  #add(message: Message): void {
    this.#waiting.push(message)
    this.#count++
    this.#take(this.#options.sizeOf(message))
  }

  #remove(message: Message): void {
    if (this.isClosed) return
    this.#count--
    this.#take(-this.#options.sizeOf(message))
  }

  #take(bytes: number): void {
    const { shared } = this.#options
    this.#bytes += bytes
    if (shared) shared.left -= bytes
  }
}
