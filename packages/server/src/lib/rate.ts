/** A token bucket: `perSecond` on average, at most `burst` at once. */
export class Rate {
  readonly #perSecond: number
  readonly #burst: number
  #left: number
  #at = performance.now()

  constructor(perSecond: number, burst = perSecond) {
    this.#perSecond = perSecond
    this.#burst = burst
    this.#left = burst
  }

  /** Takes one if there is one. */
  tryNow(): boolean {
    this.#refill()
    if (this.#left < 1) return false
    this.#left--
    return true
  }

  /** Takes one and waits for it; callers go in the order they came. */
  turn(): void | Promise<void> {
    this.take(1)
    return this.wait()
  }

  /** Takes what was used already, on credit if need be. */
  take(count: number): void {
    this.#refill()
    this.#left -= count
  }

  /** Resolves when all that was taken so far is paid for; undefined when it is already. */
  wait(): void | Promise<void> {
    this.#refill()
    if (this.#left >= 0) return
    const waitMs = (-this.#left / this.#perSecond) * 1000
    return new Promise<void>((resolve) => void setTimeout(resolve, waitMs).unref())
  }

  #refill(): void {
    const now = performance.now()
    this.#left = Math.min(this.#burst, this.#left + ((now - this.#at) / 1000) * this.#perSecond)
    this.#at = now
  }
}
