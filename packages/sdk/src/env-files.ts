import type { Client } from './client.ts'

/** The .env files of one sandbox. Paths are relative to its working directory. */
export class EnvFiles {
  readonly #client: Client
  readonly #params: { id: string }

  constructor(client: Client, sandboxId: string) {
    this.#client = client
    this.#params = { id: sandboxId }
  }
}
