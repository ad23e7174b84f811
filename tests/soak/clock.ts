// The server's time of day, which jumps, and what that does to a value that expires.
import { writeFileSync } from 'node:fs'

/** The longest time until the server uses a changed file, and the longest time of calls meanwhile. */
const SLACK_MS = 2000

/** By the server's time of day, except `setAt`. */
export interface Expiring {
  expiresAt?: number
  /** By the clock of this process. */
  setAt: number
}

export class Clock {
  readonly #file: string
  readonly #jumps: { at: number; offsetMs: number }[] = [{ at: 0, offsetMs: 0 }]

  constructor(file: string) {
    this.#file = file
    writeFileSync(file, '0')
  }

  get jumps(): number {
    return this.#jumps.length - 1
  }

  jump(byMs: number): void {
    const offsetMs = this.#jumps.at(-1)!.offsetMs + Math.round(byMs)
    this.#jumps.push({ at: Date.now(), offsetMs })
    writeFileSync(this.#file, String(offsetMs))
  }

  /** The result that a reader between `from` and now must get. A value that expired and came back with a clock set back may be swept or not. */
  fate({ expiresAt, setAt }: Expiring, from: number): 'there' | 'gone' | 'either' {
    if (expiresAt === undefined) return 'there'
    if (expiresAt > this.#highest(setAt) + SLACK_MS) return 'there'
    return expiresAt < this.#lowest(from) - SLACK_MS ? 'gone' : 'either'
  }

  #highest(since: number): number {
    const now = Date.now()
    return Math.max(...this.#during(since).map(({ offsetMs, until }) => Math.min(until, now) + offsetMs))
  }

  #lowest(since: number): number {
    return Math.min(...this.#during(since).map(({ offsetMs, at }) => Math.max(at, since) + offsetMs))
  }

  /** The shifts of the clock since then, with the one that may still have been in effect at the beginning. */
  #during(since: number): { at: number; until: number; offsetMs: number }[] {
    return this.#jumps
      .map((jump, index) => ({ ...jump, until: this.#jumps[index + 1]?.at ?? Number.POSITIVE_INFINITY }))
      .filter(({ until }) => until > since - SLACK_MS)
  }
}
