import type { IsletError, SignalEvent, SignalMessage } from '@islet/contract'

/** What may wait for a client; a slower one loses it all and is told so. */
const MAX_MESSAGES = 1000
const MAX_BYTES = 1024 * 1024

interface Waiting {
  message: SignalMessage
  bytes: number
}

/** One client: what it is to hear, in order, at its own pace. */
export class SignalListener implements AsyncIterable<SignalMessage> {
  readonly #onClose: () => void
  #waiting: Waiting[] = [{ message: { type: 'start' }, bytes: 0 }]
  #bytes = 0
  #end: { error: IsletError | undefined } | undefined
  #isClosed = false
  #wake: (() => void) | undefined

  constructor(onClose: () => void) {
    this.#onClose = onClose
  }

  push(event: SignalEvent, bytes: number): void {
    if (this.#isClosed || this.#end) return
    if (this.#waiting.length < MAX_MESSAGES && this.#bytes + bytes <= MAX_BYTES) {
      this.#waiting.push({ message: { type: 'signal', event }, bytes })
      this.#bytes += bytes
    } else {
      this.#waiting = [{ message: { type: 'overflow' }, bytes: 0 }]
      this.#bytes = 0
    }
    this.#wake?.()
  }

  /** After what waits comes an `exit`, or this error. */
  end(error?: IsletError): void {
    this.#end ??= { error }
    this.#onClose()
    this.#wake?.()
  }

  /** The client is gone. Twice is fine. */
  close(): void {
    this.#isClosed = true
    this.#waiting = []
    this.#onClose()
    this.#wake?.()
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<SignalMessage> {
    for (;;) {
      for (let next = this.#waiting.shift(); next; next = this.#waiting.shift()) {
        this.#bytes -= next.bytes
        yield next.message
      }
      if (this.#isClosed) return
      if (this.#end) break
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
    if (this.#end.error) throw this.#end.error
    yield { type: 'exit' }
  }
}
