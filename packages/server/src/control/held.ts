// Bytes that this server holds in memory for calls, bounded per sandbox and in total. A call over a bound is refused at once and
// can be retried: it does not wait for a client that reads slowly.

interface HeldOptions {
  /** For one sandbox. */
  eachBytes: number
  /** For all calls together. Calls with the API key have only this bound. */
  allBytes: number
}

export class Held {
  readonly #options: HeldOptions
  readonly #by = new Map<string, number>()
  #sum = 0

  constructor(options: HeldOptions) {
    this.#options = options
  }

  /** What one call holds, until it is disposed of. `who`: the sandbox of the caller, if it is one. */
  open(who: string | undefined): Hold {
    let own = 0
    return {
      take: (bytes) => {
        const before = who === undefined ? 0 : (this.#by.get(who) ?? 0)
        // A call that holds more than all other calls together is not refused, so that one of two large calls succeeds. Its route
        // has a limit.
        const isOver =
          (before > 2 * own && before + bytes > this.#options.eachBytes) ||
          (this.#sum > 2 * own && this.#sum + bytes > this.#options.allBytes)
        if (isOver) return false
        own += bytes
        this.#add(who, bytes)
        return true
      },
      [Symbol.dispose]: () => {
        this.#add(who, -own)
        own = 0
      },
    }
  }

  #add(who: string | undefined, bytes: number): void {
    this.#sum += bytes
    if (who === undefined) return
    const now = (this.#by.get(who) ?? 0) + bytes
    if (now === 0) this.#by.delete(who)
    else this.#by.set(who, now)
  }
}

export interface Hold extends Disposable {
  /** False: over a bound; nothing is taken. */
  take(bytes: number): boolean
}
