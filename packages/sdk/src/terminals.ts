import type { Client } from './client.ts'

/** Terminals of one sandbox: an interactive shell each, or a place for tracked commands. */
export class Terminals {
  readonly #client: Client
  readonly #params: { id: string }

  constructor(client: Client, sandboxId: string) {
    this.#client = client
    this.#params = { id: sandboxId }
  }
}
