/** Runs at most `count` works at once; the others wait in order. */
export class Limiter {
  #free: number
  readonly #waiting: (() => void)[] = []

  constructor(count: number) {
    this.#free = count
  }

  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free--
    else await new Promise<void>((resolve) => this.#waiting.push(resolve))
    try {
      return await work()
    } finally {
      const next = this.#waiting.shift()
      if (next) next()
      else this.#free++
    }
  }
}

/** A Limiter for each name. */
export class LimiterOf {
  readonly #count: number
  readonly #by = new Map<string, { limiter: Limiter; users: number }>()

  constructor(count: number) {
    this.#count = count
  }

  async run<T>(who: string, work: () => Promise<T>): Promise<T> {
    const own = this.#by.get(who) ?? { limiter: new Limiter(this.#count), users: 0 }
    this.#by.set(who, own)
    own.users++
    try {
      return await own.limiter.run(work)
    } finally {
      if (--own.users === 0) this.#by.delete(who)
    }
  }
}
