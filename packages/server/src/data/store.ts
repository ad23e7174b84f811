// The key-value store of each sandbox.
import type { Sandboxes } from '../control/sandboxes.ts'
import type { Db } from '../db/db.ts'

export interface StoreOptions {
  db: Db
  sandboxes: Sandboxes
}

export class Store {
  readonly #options: StoreOptions

  constructor(options: StoreOptions) {
    this.#options = options
  }
}
