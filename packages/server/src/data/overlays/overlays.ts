// Template directories, copied in the background.
import type { Sandboxes } from '../../control/sandboxes.ts'
import type { Db } from '../../db/db.ts'
import type { Log } from '../../log.ts'

export interface OverlaysOptions {
  db: Db
  sandboxes: Sandboxes
  log: Log
}

export class Overlays {
  readonly #options: OverlaysOptions

  constructor(options: OverlaysOptions) {
    this.#options = options
  }
}
