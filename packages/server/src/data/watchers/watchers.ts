// Watchers of files: what they see goes to everybody connected.
import type { Sandboxes } from '../../control/sandboxes.ts'
import type { Db } from '../../db/db.ts'
import type { Log } from '../../log.ts'

export interface WatchersOptions {
  db: Db
  sandboxes: Sandboxes
  log: Log
}

export class Watchers {
  readonly #options: WatchersOptions

  constructor(options: WatchersOptions) {
    this.#options = options
  }
}
