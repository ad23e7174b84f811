// How far streams may be ahead of their readers: the more streams are open, the smaller the window of each.

interface WindowsOptions {
  /** For all of them together: about this, times the logarithm of their number. */
  sharedBytes: number
  minBytes: number
  maxBytes: number
}

export class Windows {
  readonly #options: WindowsOptions
  #open = 0

  constructor(options: WindowsOptions) {
    this.#options = options
  }

  opened(): void {
    this.#open++
  }

  closed(): void {
    this.#open--
  }

  /** The window of one stream. */
  size(): number {
    const { sharedBytes, minBytes, maxBytes } = this.#options
    return Math.max(minBytes, Math.min(maxBytes, Math.floor(sharedBytes / Math.max(1, this.#open))))
  }
}
