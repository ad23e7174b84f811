// How many of something were wanted at once lately: the most in any one window of time, forgotten slowly.

const WINDOW_MS = 2_000
/** What is left of a number after a window in which less was wanted. */
const KEPT = 0.98

export class Demand {
  readonly #now: () => number
  #window = 0
  #counted = 0
  #peak = 0

  constructor(now: () => number = () => performance.now()) {
    this.#now = now
  }

  count(): void {
    this.#forget()
    this.#counted++
  }

  recent(): number {
    this.#forget()
    return Math.ceil(Math.max(this.#peak, this.#counted))
  }

  #forget(): void {
    const window = Math.floor(this.#now() / WINDOW_MS)
    const passed = window - this.#window
    if (passed <= 0) return
    // The first of them ends with what was counted in it, the others with nothing.
    this.#peak = Math.max(this.#counted, this.#peak * KEPT) * KEPT ** (passed - 1)
    if (this.#peak < 0.5) this.#peak = 0
    this.#counted = 0
    this.#window = window
  }
}
