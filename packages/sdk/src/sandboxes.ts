import type {
  CreateSandbox,
  ListSandboxes,
  SandboxDetail,
  Sandbox as SandboxInfo,
  SandboxPage,
} from '@islet/contract/client'
import type { Client, Query } from './client.ts'
import { CREATE, createOnce, LIST, type OnceOptions } from './create-once.ts'
import { ABORTABLE, guard } from './options.ts'
import { Sandbox } from './sandbox.ts'

interface Abortable {
  signal?: AbortSignal
}

export interface CreateOptions extends CreateSandbox, OnceOptions {}

export type ListOptions = Omit<ListSandboxes, 'limit'> & { limit?: number } & Abortable

export class Sandboxes {
  readonly #client: Client

  constructor(client: Client) {
    this.#client = client
  }

  /** Answers once the sandbox runs. */
  async create(options: CreateOptions = {}): Promise<Sandbox> {
    const { signal, idempotencyKey, ...body } = options
    const call = { body, signal, idempotencyKey }
    return new Sandbox(this.#client, await createOnce(this.#client, 'createSandbox', call))
  }

  /** The handle of a sandbox that exists. */
  async connect(id: string, options: Abortable = {}): Promise<Sandbox> {
    return new Sandbox(this.#client, await this.get(id, options))
  }

  get(id: string, options: Abortable = {}): Promise<SandboxDetail> {
    return this.#client.call('getSandbox', { params: { id }, signal: options.signal })
  }

  /** One page, newest first; pass its `cursor` for the next. */
  list(options: ListOptions = {}): Promise<SandboxPage> {
    const { signal, ...query } = options
    return this.#client.call('listSandboxes', { query: query as Query, signal })
  }

  /** Every page, one sandbox at a time. */
  async *all(options: ListOptions = {}): AsyncGenerator<SandboxDetail> {
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

guard(Sandboxes.prototype, 'islet.sandboxes', {
  create: [CREATE],
  connect: [null, ABORTABLE],
  get: [null, ABORTABLE],
  list: [LIST],
  all: [LIST],
  delete: [null, ABORTABLE],
})
