import type { SignalEvent, SignalMessage } from '@islet/contract'
import { BoundedQueue } from '../bounded-queue.ts'

/** A signal and its size in memory, counted once for all listeners. */
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

/** One client, which reads at its own pace, from `start` to `exit`. */
export class SignalListener implements AsyncIterable<SignalMessage> {
  readonly #queue = new BoundedQueue<Told>(OPTIONS)
  readonly #onLeave: () => void

  /** `onLeave`: it gets no more signals. */
  constructor(onLeave: () => void) {
    this.#onLeave = onLeave
  }

  push(told: Told): void {
    this.#queue.push(told)
  }

  /** After the waiting signals comes `exit`, or this error. */
  end(error?: unknown): void {
    this.#queue.end(error)
    this.#onLeave()
  }

  /** The client is gone. Calling it twice is fine. */
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
