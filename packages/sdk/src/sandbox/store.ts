import type {
  BodyOf,
  SetStore,
  StoreBatchResult,
  StoreDeleted,
  StoreEntry,
  StoreKeys,
  StoreOperation,
  StoreSet,
} from '@islet/contract/client'
import type { Client } from '../client/client.ts'
import { ABORTABLE, guard } from '../options.ts'

interface Abortable {
  signal?: AbortSignal
}

/** No URL can end in these keys, whichever way they are written, so they travel in the body. The empty one is refused there. */
const NOT_IN_URLS = new Set(['', '.', '..'])

/** The key-value store of one sandbox. Values are any JSON. */
export class Store {
  readonly #client: Client
  readonly #params: { id: string }

  constructor(client: Client, sandboxId: string) {
    this.#client = client
    this.#params = { id: sandboxId }
  }

  /** Overwrites what is there; without `ttl_seconds` it does not expire. */
  set(key: string, entry: SetStore, options: Abortable = {}): Promise<StoreSet> {
    if (NOT_IN_URLS.has(key)) return this.#operate({ op: 'set', key, ...entry }, options) as Promise<StoreSet>
    return this.#client.call('setStore', { params: this.#at(key), body: entry, ...options })
  }

  /** Code `key_not_found` when there is none, or it has expired. */
  get(key: string, options: Abortable = {}): Promise<StoreEntry> {
    if (NOT_IN_URLS.has(key)) return this.#operate({ op: 'get', key }, options) as Promise<StoreEntry>
    return this.#client.call('getStore', { params: this.#at(key), ...options })
  }

  /** `deleted` is false when there was none. */
  delete(key: string, options: Abortable = {}): Promise<StoreDeleted> {
    if (NOT_IN_URLS.has(key)) return this.#operate({ op: 'delete', key }, options) as Promise<StoreDeleted>
    return this.#client.call('deleteStore', { params: this.#at(key), ...options })
  }

  /** Keys that begin with `prefix`, sorted; `truncated` when there are more than `limit` (default 100). */
  list(options: { prefix?: string; limit?: number } & Abortable = {}): Promise<StoreKeys> {
    const { signal, ...query } = options
    return this.#client.call('listStore', { params: this.#params, query, signal })
  }

  /** All of up to 1,000 operations or, when one is not valid, none. The later one on a key wins. */
  batch(operations: readonly StoreOperation[], options: Abortable = {}): Promise<StoreBatchResult> {
    const body = { operations: [...operations] }
    return this.#client.call('batchStore', { params: this.#params, body, ...options })
  }

  #at(key: string): { id: string; key: string } {
    return { ...this.#params, key }
  }

  #operate(body: BodyOf<'storeOperation'>, options: Abortable) {
    return this.#client.call('storeOperation', { params: this.#params, body, ...options })
  }
}

guard(Store.prototype, 'sandbox.store', {
  set: [null, null, ABORTABLE],
  get: [null, ABORTABLE],
  delete: [null, ABORTABLE],
  list: [{ prefix: 1, limit: 1, signal: 1 }],
  batch: [null, ABORTABLE],
})
