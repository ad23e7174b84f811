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
import { SandboxPart } from '../client/part.ts'
import { ABORTABLE, type Abortable, guard, type Names } from '../options.ts'

/** A URL cannot end in these keys, even escaped, so they are sent in the body. The server refuses the empty key. */
const NOT_IN_URLS = new Set(['', '.', '..'])

export interface ListKeysOptions extends Abortable {
  prefix?: string
  /** Default: 100; at most 1,000. */
  limit?: number
  cursor?: string
}

const LIST: Names<ListKeysOptions> = { prefix: 1, limit: 1, cursor: 1, signal: 1 }

/** The key-value store of one sandbox. Values are any JSON. */
export class Store extends SandboxPart {
  /** Overwrites the value of the key. Without `ttl_seconds` it does not expire. */
  set(key: string, entry: SetStore, options: Abortable = {}): Promise<StoreSet> {
    if (NOT_IN_URLS.has(key)) return this.#operate({ op: 'set', key, ...entry }, options) as Promise<StoreSet>
    return this.client.call('setStore', { params: this.#at(key), body: entry, ...options })
  }

  /** Code `key_not_found` if there is no such key, or it has expired. */
  get(key: string, options: Abortable = {}): Promise<StoreEntry> {
    if (NOT_IN_URLS.has(key)) return this.#operate({ op: 'get', key }, options) as Promise<StoreEntry>
    return this.client.call('getStore', { params: this.#at(key), ...options })
  }

  /** `deleted` is false if there was no such key. */
  delete(key: string, options: Abortable = {}): Promise<StoreDeleted> {
    if (NOT_IN_URLS.has(key)) return this.#operate({ op: 'delete', key }, options) as Promise<StoreDeleted>
    return this.client.call('deleteStore', { params: this.#at(key), ...options })
  }

  /**
   * The keys that begin with `prefix`, sorted. `truncated` is true if there are more than `limit` (default 100); pass the `cursor` of
   * the answer to get the next ones.
   */
  list(options: ListKeysOptions = {}): Promise<StoreKeys> {
    const { signal, ...query } = options
    return this.client.call('listStore', { params: this.params, query, signal })
  }

  /** Applies up to 1,000 operations, or none if one is not valid. The last operation on a key wins. */
  batch(operations: readonly StoreOperation[], options: Abortable = {}): Promise<StoreBatchResult> {
    const body = { operations: [...operations] }
    return this.client.call('batchStore', { params: this.params, body, ...options })
  }

  #at(key: string): { id: string; key: string } {
    return { ...this.params, key }
  }

  #operate(body: BodyOf<'storeOperation'>, options: Abortable) {
    return this.client.call('storeOperation', { params: this.params, body, ...options })
  }
}

guard(Store.prototype, 'sandbox.store', {
  set: [null, null, ABORTABLE],
  get: [null, ABORTABLE],
  delete: [null, ABORTABLE],
  list: [LIST],
  batch: [null, ABORTABLE],
})
