/** Runs at most so many things at once; the others wait their turn. */
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

/** As Limiter, with so many for each. */
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
