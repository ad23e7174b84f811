// .env files: read, changed in place, written whole.
import type { Sandboxes } from '../../control/sandboxes.ts'

export interface EnvFilesOptions {
  sandboxes: Sandboxes
}

export class EnvFiles {
  readonly #options: EnvFilesOptions

  constructor(options: EnvFilesOptions) {
    this.#options = options
  }
}
