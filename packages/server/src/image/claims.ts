// Images that a caller is about to use, before a record names them; and when images of packages were used last.
import { utimes } from 'node:fs/promises'
import { join } from 'node:path'
import type { Image, ImageClaim } from './image.ts'

/** How often a use is written to the disk. */
const MARK_MS = 3_600_000

export class Claims {
  readonly #imagesDir: string
  readonly #counts = new Map<string, number>()
  readonly #markedAt = new Map<string, number>()

  constructor(imagesDir: string) {
    this.#imagesDir = imagesDir
  }

  names(): Iterable<string> {
    return this.#counts.keys()
  }

  async take(image: Image): Promise<ImageClaim> {
    const { name } = image
    this.#counts.set(name, (this.#counts.get(name) ?? 0) + 1)
    await this.#mark(image)
    return { image, [Symbol.dispose]: () => this.#drop(name) }
  }

  #drop(name: string): void {
    const left = this.#counts.get(name)! - 1
    if (left > 0) this.#counts.set(name, left)
    else this.#counts.delete(name)
  }

  /** gc.ts reads the time of this file. */
  async #mark({ name, source }: Image): Promise<void> {
    const now = Date.now()
    if (source.kind !== 'packages' || now - (this.#markedAt.get(name) ?? 0) < MARK_MS) return
    this.#markedAt.set(name, now)
    const date = new Date(now)
    // Without the mark it may be collected sooner.
    await utimes(join(this.#imagesDir, name, 'image.json'), date, date).catch(() => {})
  }
}
