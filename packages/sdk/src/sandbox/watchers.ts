import type { CreateWatcher, WatcherInfo } from '@islet/contract/client'
import { SandboxPart } from '../client/part.ts'
import { ABORTABLE, type Abortable, guard } from '../options.ts'
import { FileWatcher } from './file-watcher.ts'

export type WatchOptions = Omit<CreateWatcher, 'path'> & Abortable

export class Watchers extends SandboxPart {
  /** Watches a file, or a directory and everything below it. Every change after this resolves is reported. */
  async create(path: string, options: WatchOptions = {}): Promise<FileWatcher> {
    const { signal, ...rest } = options
    const body = { path, ...rest }
    const info = await this.client.call('createWatcher', { params: this.params, body, signal })
    try {
      signal?.throwIfAborted()
      return await FileWatcher.open(this.client, info)
    } catch (error) {
      // The caller never learned its id.
      await this.destroy(info.id).catch(() => {})
      throw error
    }
  }

  /** Another client of an existing watcher. */
  async connect(id: string, options: Abortable = {}): Promise<FileWatcher> {
    return FileWatcher.open(this.client, await this.retrieve(id, options))
  }

  async list(options: Abortable = {}): Promise<WatcherInfo[]> {
    return (await this.client.call('listWatchers', { params: this.params, ...options })).watchers
  }

  retrieve(id: string, options: Abortable = {}): Promise<WatcherInfo> {
    return this.client.call('getWatcher', { params: { ...this.params, wid: id }, ...options })
  }

  /** Ends the watcher for every client. Code `watcher_not_found` if it is destroyed already. */
  async destroy(id: string, options: Abortable = {}): Promise<void> {
    await this.client.call('deleteWatcher', { params: { ...this.params, wid: id }, ...options })
  }
}

guard(Watchers.prototype, 'sandbox.watcher', {
  create: [null, { includeContent: 1, ignored: 1, encoding: 1, signal: 1 }],
  connect: [null, ABORTABLE],
  list: [ABORTABLE],
  retrieve: [null, ABORTABLE],
  destroy: [null, ABORTABLE],
})
