// Terminals: an interactive shell each, or a place for tracked commands.
import type { Sandboxes } from '../control/sandboxes.ts'
import type { Db } from '../db/db.ts'
import type { Processes } from './processes.ts'

export interface TerminalsOptions {
  db: Db
  sandboxes: Sandboxes
  processes: Processes
}

export class Terminals {
  readonly #options: TerminalsOptions

  constructor(options: TerminalsOptions) {
    this.#options = options
  }
}
