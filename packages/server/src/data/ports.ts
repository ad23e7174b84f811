// What listens inside sandboxes, and who wants to know when that changes.
import type { Sandboxes } from '../control/sandboxes.ts'
import type { Log } from '../log.ts'

export interface PortsOptions {
  sandboxes: Sandboxes
  log: Log
}

export class Ports {
  readonly #options: PortsOptions

  constructor(options: PortsOptions) {
    this.#options = options
  }
}
