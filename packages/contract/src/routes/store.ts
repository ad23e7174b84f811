import { LIMITS } from '../limits.ts'
import * as store from '../schemas/store.ts'
import { type Route, SANDBOX } from './route.ts'

/** The store is reached like all that happens inside: one that stands still is woken. */
const COMMON = { tag: 'store', wakes: true } as const
const set = {
  method: 'PUT',
  summary: 'Set a value',
  ...COMMON,
  body: store.setStore,
  bodyBytes: LIMITS.storeBodyBytes,
  response: store.storeSet,
  status: 200,
} as const
const get = {
  method: 'GET',
  summary: 'Get a value',
  ...COMMON,
  response: store.storeEntry,
  status: 200,
} as const
const remove = {
  method: 'DELETE',
  summary: 'Delete a key',
  ...COMMON,
  response: store.storeDeleted,
  status: 200,
} as const
const list = {
  method: 'GET',
  summary: 'The keys, sorted',
  ...COMMON,
  query: store.listStore,
  response: store.storeKeys,
  status: 200,
} as const
const batch = {
  method: 'POST',
  summary: 'All of these operations or none',
  ...COMMON,
  body: store.storeBatch,
  bodyBytes: LIMITS.storeBatchBodyBytes,
  response: store.storeBatchResult,
  status: 200,
} as const
const operation = {
  method: 'POST',
  summary: 'Get, set or delete with the key in the body, for the keys . and .. which no URL can end in',
  ...COMMON,
  body: store.storeKeyOperation,
  bodyBytes: LIMITS.storeBodyBytes,
  response: store.storeKeyResult,
  status: 200,
} as const

/** Under a sandbox's address, and alone for callers whose token names the sandbox. */
export const storeRoutes = {
  listStore: { ...list, path: `${SANDBOX}/store` },
  batchStore: { ...batch, path: `${SANDBOX}/store/batch` },
  storeOperation: { ...operation, path: `${SANDBOX}/store/key` },
  getStore: { ...get, path: `${SANDBOX}/store/{key}` },
  setStore: { ...set, path: `${SANDBOX}/store/{key}` },
  deleteStore: { ...remove, path: `${SANDBOX}/store/{key}` },
  listOwnStore: { ...list, path: '/v1/store', ofCaller: true },
  batchOwnStore: { ...batch, path: '/v1/store/batch', ofCaller: true },
  ownStoreOperation: { ...operation, path: '/v1/store/key', ofCaller: true },
  getOwnStore: { ...get, path: '/v1/store/{key}', ofCaller: true },
  setOwnStore: { ...set, path: '/v1/store/{key}', ofCaller: true },
  deleteOwnStore: { ...remove, path: '/v1/store/{key}', ofCaller: true },
} as const satisfies Record<string, Route>
