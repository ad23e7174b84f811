/**
 * Walks through the files of layers, which take as long as there are files: few at once, so that whoever has many files and asks
 * often does not keep the workers from those who remove layers; and who asks while one is on its way gets what that finds.
 */
export class Walks {
  readonly #found = new Map<string, Promise<number>>()
  readonly #waiting: (() => void)[] = []
  #free: number

  constructor(count: number) {
    this.#free = count
  }

  of(layer: string, walk: () => Promise<number>): Promise<number> {
    let found = this.#found.get(layer)
    if (!found) {
      found = this.#inTurn(walk).finally(() => this.#found.delete(layer))
      this.#found.set(layer, found)
    }
    return found
  }

  async #inTurn(walk: () => Promise<number>): Promise<number> {
    if (this.#free > 0) this.#free--
    else await new Promise<void>((resolve) => this.#waiting.push(resolve))
    try {
      return await walk()
    } finally {
      const next = this.#waiting.shift()
      if (next) next()
      else this.#free++
    }
  }
}
