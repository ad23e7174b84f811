import type { Client } from './client.ts'

/** The key-value store of one sandbox. Values are any JSON. */
export class Store {
  readonly #client: Client
  readonly #params: { id: string }

  constructor(client: Client, sandboxId: string) {
    this.#client = client
    this.#params = { id: sandboxId }
  }
}
