/** Chances that are the same for the same seed (mulberry32). */
export class Random {
  #state: number

  constructor(seed: number) {
    this.#state = seed | 0
  }

  /** From 0 to 1. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }

  chance(of: number): boolean {
    return this.next() < of
  }

  between(least: number, most: number): number {
    return least + this.next() * (most - least)
  }

  pick<T>(from: readonly T[]): T | undefined {
    return from[Math.floor(this.next() * from.length)]
  }

  /** One of them, by weight. */
  weighted<T>(from: readonly (readonly [weight: number, item: T])[]): T {
    let at = this.next() * from.reduce((sum, [weight]) => sum + weight, 0)
    for (const [weight, item] of from) {
      at -= weight
      if (at < 0) return item
    }
    return from.at(-1)![1]
  }
}
