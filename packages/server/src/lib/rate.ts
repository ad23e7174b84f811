/** So many per second on average, and as many at once. */
export class Rate {
  readonly #perSecond: number
  #left: number
  #at = performance.now()

  constructor(perSecond: number) {
    this.#perSecond = perSecond
    this.#left = perSecond
  }

  /** False: not now. */
  tryNow(): boolean {
    this.#refill()
    if (this.#left < 1) return false
    this.#left--
    return true
  }

  /** Resolves when it is one's turn; those who wait go in the order they came. */
  turn(): Promise<void> {
    this.take(1)
    return this.wait()
  }

  /** For what has been used already; whoever comes next waits for it. */
  take(count: number): void {
    this.#refill()
    this.#left -= count
  }

  async wait(): Promise<void> {
    this.#refill()
    if (this.#left >= 0) return
    const waitMs = (-this.#left / this.#perSecond) * 1000
    await new Promise<void>((resolve) => void setTimeout(resolve, waitMs).unref())
  }

  #refill(): void {
    const now = performance.now()
    this.#left = Math.min(this.#perSecond, this.#left + ((now - this.#at) / 1000) * this.#perSecond)
    this.#at = now
  }
}
