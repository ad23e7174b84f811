// Live messages about a sandbox, to whoever listens.
import type { SignalEvent } from '@islet/contract'
import type { Sandboxes } from '../control/sandboxes.ts'
import type { Log } from '../log.ts'
import type { Ports } from './ports.ts'

export interface SignalsOptions {
  sandboxes: Sandboxes
  ports: Ports
  log: Log
  /** The address of a port from outside. */
  previewUrl: (sandboxId: string, port: number) => Promise<string>
}

export class Signals {
  readonly #options: SignalsOptions

  constructor(options: SignalsOptions) {
    this.#options = options
  }

  /** Tells everybody who listens; with nobody there it is gone. */
  emit(_sandboxId: string, _event: SignalEvent): void {}
}
