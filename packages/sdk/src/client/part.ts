import type { Client } from './client.ts'

/** A group of methods that share a client, like `islet.images`. */
export abstract class Part {
  readonly #client: Client

  constructor(client: Client) {
    this.#client = client
  }

  protected get client(): Client {
    return this.#client
  }
}

/** A group of methods of one sandbox, like `sandbox.files`. */
export abstract class SandboxPart extends Part {
  readonly #params: { id: string }

  constructor(client: Client, sandboxId: string) {
    super(client)
    this.#params = { id: sandboxId }
  }

  /** The path parameters of every call about the sandbox. */
  protected get params(): { id: string } {
    return this.#params
  }
}
