// What layers hold, as of a moment ago, where the filesystem does not count it: their files are walked through again and again, and
// whoever asks gets what the last walk found.

/** A walk takes as long as there are files. A layer is left alone for so many times as long, and for so long at least. */
const REST = { times: 4, ms: 100 }

interface Found {
  bytes: number | undefined
  /** When it may be walked through again. */
  nextAt: number
}

export class Growth {
  readonly #walk: (layer: string) => Promise<number>
  readonly #found = new Map<string, Found>()

  constructor(walk: (layer: string) => Promise<number>) {
    this.#walk = walk
  }

  /** Nothing of those that were not walked through yet. Those that nobody asks for any more are forgotten. */
  of(layers: readonly string[]): Map<string, number> {
    const wanted = new Set(layers)
    for (const layer of this.#found.keys()) if (!wanted.has(layer)) this.#found.delete(layer)
    const sizes = new Map<string, number>()
    for (const layer of layers) {
      const { bytes, nextAt } = this.#found.get(layer) ?? { bytes: undefined, nextAt: 0 }
      if (bytes !== undefined) sizes.set(layer, bytes)
      if (performance.now() >= nextAt) this.#look(layer, bytes)
    }
    return sizes
  }

  #look(layer: string, before: number | undefined): void {
    const found: Found = { bytes: before, nextAt: Number.POSITIVE_INFINITY }
    this.#found.set(layer, found)
    const began = performance.now()
    this.#walk(layer)
      .then((bytes) => {
        found.bytes = bytes
      })
      // It was deleted meanwhile.
      .catch(() => {})
      .finally(() => {
        const now = performance.now()
        found.nextAt = now + Math.max((now - began) * REST.times, REST.ms)
      })
  }
}
