// What waits for one client. A client that does not keep up loses what waits and is told so; it slows nobody.

import { Wakeup } from '../lib/wakeup.ts'

interface QueueOptions<Message> {
  maxMessages: number
  maxBytes: number
  /** About what it takes in memory. */
  sizeOf(message: Message): number
  /** Takes the place of what was lost. */
  overflow: Message
  /** For several queues together. */
  shared?: Budget
}

/** Bytes that may wait in several queues. */
export class Budget {
  left: number

  constructor(bytes: number) {
    this.left = bytes
  }
}

export class BoundedQueue<Message> implements AsyncIterable<Message> {
  /** Somebody has begun to read it. */
  isRead = false
  isClosed = false
  readonly #options: QueueOptions<Message>
  #waiting: Message[] = []
  /** Of those waiting, and of those the reader has taken but not handled. */
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

  /** The last to come: the iteration ends after what waits, with an error if there is one. */
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
    // The one that says so is there already, and nothing came after it.
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
