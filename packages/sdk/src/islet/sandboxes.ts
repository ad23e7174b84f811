import type {
  CreateSandbox,
  ListSandboxes,
  SandboxDetail,
  Sandbox as SandboxInfo,
  SandboxPage,
} from '@islet/contract/client'
import type { Query } from '../client/client.ts'
import { Part } from '../client/part.ts'
import type { Progressing } from '../client/work.ts'
import { hasCode } from '../errors.ts'
import { ABORTABLE, type Abortable, guard } from '../options.ts'
import { Sandbox } from '../sandbox/sandbox.ts'
import { type FileToWrite, toFiles } from '../transport/files.ts'
import { CREATE, createOnce, LIST, newKey, type OnceOptions, REUSE } from './create-once.ts'

export interface CreateOptions extends Omit<CreateSandbox, 'files'>, OnceOptions, Progressing {
  /** Written before this resolves, at most 8 MiB together; without all of them there is no sandbox. */
  files?: readonly FileToWrite[]
}

/** The options of `create`. They are used only if a new sandbox is made, and not compared with an existing one. */
export type GetOrCreateOptions = Omit<CreateOptions, 'name' | 'idempotencyKey'>

/** How often to ask whether a sandbox that is being created runs. */
const CREATING_POLL_MS = 50

export interface ListOptions extends ListSandboxes, Abortable {}

export class Sandboxes extends Part {
  /**
   * Resolves when the sandbox runs. The first use of a runtime, or of a set of packages, takes as long as making it; `onProgress` tells
   * what happens.
   */
  async create(options: CreateOptions = {}): Promise<Sandbox> {
    const { signal, idempotencyKey, files, onProgress, ...rest } = options
    const body = { ...rest, files: await toFiles(files, signal) }
    const call = { body, signal, idempotencyKey, onProgress }
    return new Sandbox(this.client, await createOnce(this.client, 'createSandbox', call))
  }

  /**
   * The sandbox with this name as it is, or a new one with these options. Callers that ask at the same time get the same
   * sandbox.
   */
  async getOrCreate(name: string, options: GetOrCreateOptions = {}): Promise<Sandbox> {
    let files: GetOrCreateOptions['files']
    for (;;) {
      try {
        return await this.#existing(name, options.signal)
      } catch (error) {
        if (!hasCode(error, 'sandbox_not_found')) throw error
      }
      // Streams can be read only once.
      files ??= await toFiles(options.files, options.signal)
      try {
        // With an explicit key an aborted create is not undone: another caller may use the sandbox already.
        return await this.create({ ...options, files, name, idempotencyKey: newKey() })
      } catch (error) {
        // Another caller was first.
        if (!hasCode(error, 'name_taken')) throw error
      }
    }
  }

  /** Waits while the sandbox is being created. */
  async #existing(name: string, signal?: AbortSignal): Promise<Sandbox> {
    for (;;) {
      const sandbox = await this.connect(name, { signal })
      if (sandbox.status !== 'creating') return sandbox
      await new Promise((resolve) => setTimeout(resolve, CREATING_POLL_MS))
    }
  }

  /** A handle for an existing sandbox, by its id or name. */
  async connect(id: string, options: Abortable = {}): Promise<Sandbox> {
    return new Sandbox(this.client, await this.get(id, options))
  }

  /**
   * The same without a request: calls fail with `sandbox_not_found` if there is no such sandbox. `status` is `running` until an
   * answer says more.
   */
  handle(id: string): Sandbox {
    return new Sandbox(this.client, { id, status: 'running' })
  }

  get(id: string, options: Abortable = {}): Promise<SandboxDetail> {
    return this.client.call('getSandbox', { params: { id }, signal: options.signal })
  }

  /** One page, by default newest first; pass its `cursor` for the next, or count with `offset`. */
  list(options: ListOptions = {}): Promise<SandboxPage> {
    const { signal, ...query } = options
    return this.client.call('listSandboxes', { query: query as Query, signal })
  }

  /** All pages, one sandbox at a time. */
  async *all(options: ListOptions = {}): AsyncGenerator<SandboxDetail> {
    let { cursor, offset } = options
    do {
      const page = await this.list({ ...options, cursor, offset })
      yield* page.sandboxes
      cursor = page.cursor
      offset = undefined
    } while (cursor !== undefined)
  }

  /** Stops a sandbox and removes everything in it. Its record stays. */
  delete(id: string, options: Abortable = {}): Promise<SandboxInfo> {
    return this.client.call('deleteSandbox', { params: { id }, signal: options.signal })
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
