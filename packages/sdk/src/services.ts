import type { Client } from './client.ts'

/** Long-running programs of one sandbox that are kept running. */
export class Services {
  readonly #client: Client
  readonly #params: { id: string }

  constructor(client: Client, sandboxId: string) {
    this.#client = client
    this.#params = { id: sandboxId }
  }
}
