// Bytes that this server holds for callers, bounded for each sandbox and for all together. What is over a bound is refused, and its caller
// comes again later: nobody waits for a caller who does not read.

interface HeldOptions {
  /** For one sandbox. */
  eachBytes: number
  /** For all, and for whoever is no sandbox: the holder of the API key. */
  allBytes: number
}

export class Held {
  readonly #options: HeldOptions
  readonly #by = new Map<string, number>()
  #sum = 0

  constructor(options: HeldOptions) {
    this.#options = options
  }

  /** What one call holds, until it is disposed of. `who`: a sandbox, or undefined. */
  open(who: string | undefined): Hold {
    let own = 0
    return {
      take: (bytes) => {
        const before = who === undefined ? 0 : (this.#by.get(who) ?? 0)
        // A call that holds more than all other calls together is not refused, so that one of two large calls succeeds. Its route has a limit.
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
  /** False: it would be too much beside what is held already. */
  take(bytes: number): boolean
}
