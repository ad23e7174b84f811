import type { Client } from './client.ts'

/** Live messages about one sandbox. */
export class Signals {
  readonly #client: Client
  readonly #params: { id: string }

  constructor(client: Client, sandboxId: string) {
    this.#client = client
    this.#params = { id: sandboxId }
  }
}
