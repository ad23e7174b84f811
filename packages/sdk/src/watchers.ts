import type { Client } from './client.ts'

/** File watchers of one sandbox. */
export class Watchers {
  readonly #client: Client
  readonly #params: { id: string }

  constructor(client: Client, sandboxId: string) {
    this.#client = client
    this.#params = { id: sandboxId }
  }
}
