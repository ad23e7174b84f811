// What waits for one client of a watcher. A client that does not keep up loses what waits and is told so; it slows nobody.
import type { WatcherMessage } from '@islet/contract'

const MAX_MESSAGES = 16_384
const MAX_BYTES = 32 * 1024 * 1024
/** Of a message beside its path and content. */
const MESSAGE_BYTES = 128

export class MessageQueue implements AsyncIterable<WatcherMessage> {
  /** Somebody has begun to read it. */
  isRead = false
  #waiting: WatcherMessage[] = []
  /** Of those waiting, and of those the reader has taken but not handled. */
  #count = 0
  #bytes = 0
  #end: { error?: unknown } | undefined
  #isClosed = false
  #wake: (() => void) | undefined

  push(message: WatcherMessage): void {
    if (this.#isClosed || this.#end) return
    const bytes = sizeOf(message)
    if (this.#count >= MAX_MESSAGES || this.#bytes + bytes > MAX_BYTES) this.#overflow()
    else this.#add(message, bytes)
    this.#wake?.()
  }

  /** The last to come: the iteration ends after what waits, with an error if there is one. */
  end(error?: unknown): void {
    this.#end ??= { error }
    this.#wake?.()
  }

  /** The reader has gone. */
  close(): void {
    this.#isClosed = true
    this.#waiting = []
    this.#wake?.()
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<WatcherMessage> {
    this.isRead = true
    while (!this.#isClosed) {
      const batch = this.#waiting
      this.#waiting = []
      for (const message of batch) {
        if (this.#isClosed) return
        yield message
        this.#count--
        this.#bytes -= sizeOf(message)
      }
      if (this.#isClosed || this.#waiting.length > 0) continue
      if (this.#end) {
        if (this.#end.error !== undefined) throw this.#end.error
        return
      }
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
  }

  #overflow(): void {
    // The one that says so is there already, and nothing came after it.
    if (this.#waiting.length === 1 && this.#waiting[0]!.type === 'overflow') return
    for (const message of this.#waiting) {
      this.#count--
      this.#bytes -= sizeOf(message)
    }
    this.#waiting = []
    this.#add({ type: 'overflow' }, MESSAGE_BYTES)
  }

  #add(message: WatcherMessage, bytes: number): void {
    this.#waiting.push(message)
    this.#count++
    this.#bytes += bytes
  }
}

function sizeOf(message: WatcherMessage): number {
  if (message.type !== 'change') return MESSAGE_BYTES
  // In memory a character takes up to two bytes.
  return MESSAGE_BYTES + 2 * (message.path.length + (message.content?.length ?? 0))
}
