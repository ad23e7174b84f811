import type {
  CreateSandbox,
  ListSandboxes,
  SandboxDetail,
  Sandbox as SandboxInfo,
  SandboxPage,
} from '@islet/contract/client'
import type { Client, Query } from '../client/client.ts'
import { hasCode } from '../errors.ts'
import { ABORTABLE, guard } from '../options.ts'
import { Sandbox } from '../sandbox/sandbox.ts'
import { CREATE, createOnce, LIST, newKey, type OnceOptions, REUSE } from './create-once.ts'

interface Abortable {
  signal?: AbortSignal
}

export interface CreateOptions extends CreateSandbox, OnceOptions {}

/** Those of `create`. They are not compared with how a sandbox that exists was made. */
export type GetOrCreateOptions = Omit<CreateOptions, 'name' | 'idempotencyKey'>

/** Between two looks at one that is in the making. */
const MAKING_MS = 50

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

  /**
   * The sandbox that has this name, as it is; if there is none, a new one with these options. However many ask at once, all
   * are given the same.
   */
  async getOrCreate(name: string, options: GetOrCreateOptions = {}): Promise<Sandbox> {
    for (;;) {
      try {
        return await this.#made(name, options.signal)
      } catch (error) {
        if (!hasCode(error, 'sandbox_not_found')) throw error
      }
      try {
        // With a key of its own an aborted create is not undone: somebody else may have been given it.
        return await this.create({ ...options, name, idempotencyKey: newKey() })
      } catch (error) {
        // Somebody else was first.
        if (!hasCode(error, 'name_taken')) throw error
      }
    }
  }

  /** One that is in the making is waited for. */
  async #made(name: string, signal?: AbortSignal): Promise<Sandbox> {
    for (;;) {
      const sandbox = await this.connect(name, { signal })
      if (sandbox.status !== 'creating') return sandbox
      await new Promise((resolve) => setTimeout(resolve, MAKING_MS))
    }
  }

  /** The handle of a sandbox that exists, by its id or name. */
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
  getOrCreate: [null, REUSE],
  connect: [null, ABORTABLE],
  get: [null, ABORTABLE],
  list: [LIST],
  all: [LIST],
  delete: [null, ABORTABLE],
})
