// Recent sizes of layers on a filesystem that does not count them. Their files are walked again and again; callers get the result
// of the last walk.

/** The pause between two walks of a layer: this multiple of the duration of the last one, at least `ms`. */
const REST = { times: 4, ms: 100 }

interface Found {
  bytes: number | undefined
  /** When it may be walked again. */
  nextAt: number
}

export class Growth {
  readonly #walk: (layer: string) => Promise<number>
  readonly #found = new Map<string, Found>()

  constructor(walk: (layer: string) => Promise<number>) {
    this.#walk = walk
  }

  /** Without layers that were not walked yet. Forgets layers that are not asked for any more. */
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
