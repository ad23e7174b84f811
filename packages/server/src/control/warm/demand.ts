// Recent demand: the most that was wanted in one window of time, decaying slowly.

const WINDOW_MS = 2_000
/** Decay of the peak per window with less demand. */
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
    // The first passed window had the counted demand, later ones had none.
    this.#peak = Math.max(this.#counted, this.#peak * KEPT) * KEPT ** (passed - 1)
    if (this.#peak < 0.5) this.#peak = 0
    this.#counted = 0
    this.#window = window
  }
}
