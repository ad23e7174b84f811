import type { CreateWatcher, WatcherInfo } from '@islet/contract/client'
import type { Client } from '../client/client.ts'
import { ABORTABLE, guard } from '../options.ts'
import { FileWatcher } from './file-watcher.ts'

export type WatchOptions = Omit<CreateWatcher, 'path'> & { signal?: AbortSignal }

/** File watchers of one sandbox. */
export class Watchers {
  readonly #client: Client
  readonly #params: { id: string }

  constructor(client: Client, sandboxId: string) {
    this.#client = client
    this.#params = { id: sandboxId }
  }

  /** Watches a file, or a directory and all below it. What happens after this has resolved is seen. */
  async create(path: string, options: WatchOptions = {}): Promise<FileWatcher> {
    const { signal, ...rest } = options
    const body = { path, ...rest }
    const info = await this.#client.call('createWatcher', { params: this.#params, body, signal })
    try {
      signal?.throwIfAborted()
      return await FileWatcher.open(this.#client, info)
    } catch (error) {
      // Nobody would know its id.
      await this.destroy(info.id).catch(() => {})
      throw error
    }
  }

  /** Follows one that exists, beside its other clients. */
  async connect(id: string, options: { signal?: AbortSignal } = {}): Promise<FileWatcher> {
    return FileWatcher.open(this.#client, await this.retrieve(id, options))
  }

  async list(options: { signal?: AbortSignal } = {}): Promise<WatcherInfo[]> {
    return (await this.#client.call('listWatchers', { params: this.#params, ...options })).watchers
  }

  retrieve(id: string, options: { signal?: AbortSignal } = {}): Promise<WatcherInfo> {
    return this.#client.call('getWatcher', { params: { ...this.#params, wid: id }, ...options })
  }

  /** Ends it for every client. Of one that is destroyed: code `watcher_not_found`. */
  async destroy(id: string, options: { signal?: AbortSignal } = {}): Promise<void> {
    await this.#client.call('deleteWatcher', { params: { ...this.#params, wid: id }, ...options })
  }
}

guard(Watchers.prototype, 'sandbox.watcher', {
  create: [null, { includeContent: 1, ignored: 1, encoding: 1, signal: 1 }],
  connect: [null, ABORTABLE],
  list: [ABORTABLE],
  retrieve: [null, ABORTABLE],
  destroy: [null, ABORTABLE],
})
