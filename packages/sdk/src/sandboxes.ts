import type { CreateSandbox, ListSandboxes, Sandbox as SandboxInfo, SandboxPage } from '@islet/contract'
import type { Client, Query } from './client.ts'
import { Sandbox } from './sandbox.ts'

interface Abortable {
  signal?: AbortSignal
}

export interface CreateOptions extends CreateSandbox, Abortable {
  /** The same key with the same options gives the same sandbox. Default: a new one for each call. */
  idempotencyKey?: string
}

export type ListOptions = Omit<ListSandboxes, 'limit'> & { limit?: number } & Abortable

export class Sandboxes {
  readonly #client: Client

  constructor(client: Client) {
    this.#client = client
  }

  /** Answers once the sandbox runs. */
  async create(options: CreateOptions = {}): Promise<Sandbox> {
    const { signal, idempotencyKey, ...body } = options
    const call = { body, idempotencyKey: idempotencyKey ?? newKey() }
    try {
      return new Sandbox(this.#client, await this.#client.call('createSandbox', { ...call, signal }))
    } catch (error) {
      // It may have been made, or be in the making, and nobody else has the key to find it by.
      if (signal?.aborted && idempotencyKey === undefined) void this.#undo(call)
      throw error
    }
  }

  async #undo(call: { body: CreateSandbox; idempotencyKey: string }): Promise<void> {
    try {
      await this.delete((await this.#client.call('createSandbox', call)).id)
    } catch {
      // The caller has gone on long ago.
    }
  }

  /** The handle of a sandbox that exists. */
  async connect(id: string, options: Abortable = {}): Promise<Sandbox> {
    return new Sandbox(this.#client, await this.get(id, options))
  }

  get(id: string, options: Abortable = {}): Promise<SandboxInfo> {
    return this.#client.call('getSandbox', { params: { id }, signal: options.signal })
  }

  /** One page, newest first; pass its `cursor` for the next. */
  list(options: ListOptions = {}): Promise<SandboxPage> {
    const { signal, ...query } = options
    return this.#client.call('listSandboxes', { query: query as Query, signal })
  }

  /** Every page, one sandbox at a time. */
  async *all(options: ListOptions = {}): AsyncGenerator<SandboxInfo> {
    let { cursor } = options
    do {
      const page = await this.list({ ...options, cursor })
      yield* page.sandboxes
      cursor = page.cursor
    } while (cursor !== undefined)
  }

  /** Stops a sandbox and removes all it holds; its record stays. */
  delete(id: string, options: Abortable = {}): Promise<SandboxInfo> {
    return this.#client.call('deleteSandbox', { params: { id }, signal: options.signal })
  }
}

/** Not crypto.randomUUID: a page that is not served over TLS does not have it. */
function newKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16))
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
}
