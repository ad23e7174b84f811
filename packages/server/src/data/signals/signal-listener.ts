import type { SignalEvent, SignalMessage } from '@islet/contract'
import { BoundedQueue } from '../bounded-queue.ts'

/** A signal and what it takes in memory, counted once for all who hear it. */
interface Told {
  message: SignalMessage
  bytes: number
}

const OPTIONS = {
  maxMessages: 1000,
  maxBytes: 1024 * 1024,
  sizeOf: ({ bytes }: Told) => bytes,
  overflow: { message: { type: 'overflow' }, bytes: 0 } as Told,
}

/** In memory a character takes up to two bytes. */
export function toTold(event: SignalEvent): Told {
  return { message: { type: 'signal', event }, bytes: 64 + 2 * JSON.stringify(event).length }
}

/** One client: what it is to hear, from `start` to `exit`, at its own pace. */
export class SignalListener implements AsyncIterable<SignalMessage> {
  readonly #queue = new BoundedQueue<Told>(OPTIONS)
  readonly #onLeave: () => void

  /** `onLeave`: it hears no more. */
  constructor(onLeave: () => void) {
    this.#onLeave = onLeave
  }

  push(told: Told): void {
    this.#queue.push(told)
  }

  /** After what waits comes an `exit`, or this error. */
  end(error?: unknown): void {
    this.#queue.end(error)
    this.#onLeave()
  }

  /** The client is gone. Twice is fine. */
  close(): void {
    this.#queue.close()
    this.#onLeave()
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<SignalMessage> {
    yield { type: 'start' }
    for await (const { message } of this.#queue) yield message
    if (!this.#queue.isClosed) yield { type: 'exit' }
  }
}
