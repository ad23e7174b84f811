import { Limiter } from './limiter.ts'
import { Shared } from './shared.ts'

/**
 * Walks over all files of a layer, which take as long as there are files. Only a few run at once, so that they do not hold up
 * the removal of layers. Callers who ask for a layer that is being walked share that walk.
 */
export class Walks {
  readonly #limiter: Limiter
  readonly #shared = new Shared<number>()

  constructor(count: number) {
    this.#limiter = new Limiter(count)
  }

  of(layer: string, walk: () => Promise<number>): Promise<number> {
    return this.#shared.run(layer, () => this.#limiter.run(walk))
  }
}
