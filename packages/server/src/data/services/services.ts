// Long-running programs that are kept running.
import type { Sandboxes } from '../../control/sandboxes.ts'
import type { Db } from '../../db/db.ts'
import type { Log } from '../../log.ts'
import type { EnvFiles } from '../env-files/env-files.ts'
import type { Files } from '../files.ts'
import type { Ports } from '../ports.ts'
import type { Processes } from '../processes.ts'
import type { Signals } from '../signals.ts'

export interface ServicesOptions {
  db: Db
  sandboxes: Sandboxes
  processes: Processes
  files: Files
  envFiles: EnvFiles
  ports: Ports
  signals: Signals
  log: Log
  /** The address of a port from outside; makes its preview if there is none. */
  previewUrl: (sandboxId: string, port: number) => Promise<string>
}

export class Services {
  readonly #options: ServicesOptions

  constructor(options: ServicesOptions) {
    this.#options = options
  }
}
