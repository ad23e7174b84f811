// The URLs by which ports of sandboxes are reached from outside.
import { IsletError } from '@islet/contract'
import type { Config } from '../config.ts'
import type { Sandboxes } from '../control/sandboxes.ts'
import type { Db } from '../db/db.ts'
import type { AdminKey } from '../key.ts'
import type { Log } from '../log.ts'
import type { Tokens } from '../tokens.ts'

export interface PreviewsOptions {
  db: Db
  sandboxes: Sandboxes
  tokens: Tokens
  key: Pick<AdminKey, 'keyMatches'>
  log: Log
  config: Pick<Config, 'host'>
}

export class Previews {
  readonly #options: PreviewsOptions

  constructor(options: PreviewsOptions) {
    this.#options = options
  }

  /** Makes the preview of a port if there is none. */
  async urlOf(_sandboxId: string, _port: number): Promise<string> {
    throw new IsletError('not_supported')
  }
}
