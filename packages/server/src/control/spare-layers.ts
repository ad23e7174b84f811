// Layers that wait for a sandbox, where making one takes a moment (btrfs: a subvolume with a limit, or a clone of one): empty ones,
// and copies of what sandboxes were lately made from. What nobody took is removed; after a crash nobody holds it, and the next
// start sweeps it.
import { DEFAULTS, newId } from '@islet/contract'
import type { Log } from '../log.ts'
import type { Storage } from '../storage/storage.ts'

/** Of each saved layer that is used again and again, and for how long after the last time. */
const COPIES = 2
const WANTED_MS = 60_000
/** Saved layers of which there are copies. */
const MAX_WANTED = 16

/** What is empty is over nothing. */
const NOTHING = ''

interface Spares {
  ready: string[]
  /** Nobody wants more of them. */
  forgetting?: NodeJS.Timeout
}

export class SpareLayers {
  readonly #parts: { storage: Storage; log: Log }
  readonly #spares = new Map<string, Spares>([[NOTHING, { ready: [] }]])

  constructor(parts: { storage: Storage; log: Log }) {
    this.#parts = parts
  }

  /** An empty one, or a copy of `over`, which will be wanted again. Undefined: none of this size waits. */
  take(limitBytes: number, over = NOTHING): string | undefined {
    if (limitBytes !== DEFAULTS.diskBytes || this.#parts.storage.capabilities.clone !== 'btrfs')
      return undefined
    if (over !== NOTHING) this.#want(over)
    return this.#spares.get(over)?.ready.shift()
  }

  /** One more of each kind that is short, at most so many empty ones. */
  async fill(target: number): Promise<void> {
    if (this.#parts.storage.capabilities.clone !== 'btrfs') return
    for (const [over, spares] of this.#spares) {
      if (spares.ready.length >= (over === NOTHING ? target : COPIES)) continue
      const layer = await this.#make(over)
      // It may have been forgotten meanwhile.
      if (layer && this.#spares.get(over)?.ready === spares.ready) spares.ready.push(layer)
      else if (layer) await this.#remove([layer])
    }
  }

  /** At most so many empty ones are left. */
  async trim(target: number): Promise<void> {
    await this.#remove(this.#spares.get(NOTHING)?.ready.splice(target) ?? [])
  }

  /** These are about to be deleted: so are the copies of them. */
  async forget(layers: readonly string[]): Promise<void> {
    for (const over of layers) await this.#forget(over)
  }

  async close(): Promise<void> {
    await Promise.all([...this.#spares.keys()].map((over) => this.#forget(over)))
  }

  /** Undefined: what it would be a copy of may have been deleted. */
  async #make(over: string): Promise<string | undefined> {
    const { storage, log } = this.#parts
    const layer = newId('layer')
    const options = { limitBytes: DEFAULTS.diskBytes }
    if (over === NOTHING) {
      await storage.create(layer, options)
      return layer
    }
    try {
      await storage.clone(over, layer, options)
      return layer
    } catch (error) {
      log.debug({ error, over }, 'no copy was made ahead')
      await this.#forget(over)
    }
  }

  #want(over: string): void {
    const known = this.#spares.get(over)
    if (!known && this.#spares.size > MAX_WANTED) return
    clearTimeout(known?.forgetting)
    const forgetting = setTimeout(() => this.#forget(over), WANTED_MS).unref()
    this.#spares.set(over, { ready: known?.ready ?? [], forgetting })
  }

  async #forget(over: string): Promise<void> {
    const spares = this.#spares.get(over)
    this.#spares.delete(over)
    clearTimeout(spares?.forgetting)
    await this.#remove(spares?.ready ?? [])
  }

  async #remove(layers: readonly string[]): Promise<void> {
    for (const layer of layers)
      await this.#parts.storage
        .delete(layer)
        .catch((error) =>
          this.#parts.log.error({ error, layer }, 'layer not deleted; the next start does it'),
        )
  }
}
