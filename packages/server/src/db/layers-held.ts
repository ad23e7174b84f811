import type { Root } from '../engine/engine.ts'
import type { Db } from './db.ts'

/** Which sandboxes and saved states need which layers. */
export class LayersHeld {
  readonly #db: Db

  constructor(db: Db) {
    this.#db = db
  }

  /** In addition to the layers that the holder has already. */
  hold(holder: string, root: Root): void {
    for (const layer of layersOf(root))
      this.#db.run('INSERT OR IGNORE INTO layers_held (layer, holder) VALUES (?, ?)', layer, holder)
  }

  /** From now on the holder needs only this root. Returns the layers that have no holder any more. */
  holdOnly(holder: string, root: Root | undefined): string[] {
    const before = this.#db.column<string>('SELECT layer FROM layers_held WHERE holder = ?', holder)
    this.#db.run('DELETE FROM layers_held WHERE holder = ?', holder)
    if (root) this.hold(holder, root)
    return before.filter((layer) => !this.isHeld(layer))
  }

  isHeld(layer: string): boolean {
    return this.#db.get('SELECT 1 AS held FROM layers_held WHERE layer = ?', layer) !== undefined
  }

  /** Rebuilds the table from the records, after a crash between two steps. */
  rebuild(holders: Iterable<{ id: string; root: Root }>): void {
    this.#db.transaction(() => {
      this.#db.run('DELETE FROM layers_held')
      for (const { id, root } of holders) this.hold(id, root)
    })
  }
}

/** Its own layer, if it has one, and all layers below. */
export function layersOf(root: Root): Set<string> {
  const lowers = root.trees.flatMap(({ lowers }) => lowers)
  return new Set([
    ...(root.layer === '' ? [] : [root.layer]),
    ...lowers.flatMap((lower) => (lower.kind === 'layer' ? lower.name : [])),
  ])
}
