import { LIMITS } from '../limits.ts'
import * as store from '../schemas/store.ts'
import { SANDBOX, tagged } from './route.ts'

/** Like every access to the inside, the store wakes a suspended sandbox. */
const COMMON = { wakes: true } as const
const set = {
  method: 'PUT',
  summary: 'Set a value',
  ...COMMON,
  body: store.setStore,
  bodyBytes: LIMITS.storeBodyBytes,
  response: store.storeSet,
} as const
const get = {
  method: 'GET',
  summary: 'Get a value',
  ...COMMON,
  response: store.storeEntry,
} as const
const remove = {
  method: 'DELETE',
  summary: 'Delete a key',
  ...COMMON,
  response: store.storeDeleted,
} as const
const list = {
  method: 'GET',
  summary: 'List the keys, sorted',
  ...COMMON,
  query: store.listStore,
  response: store.storeKeys,
} as const
const batch = {
  method: 'POST',
  summary: 'Apply all operations, or none',
  ...COMMON,
  body: store.storeBatch,
  bodyBytes: LIMITS.storeBatchBodyBytes,
  response: store.storeBatchResult,
} as const
const operation = {
  method: 'POST',
  summary: 'Get, set or delete with the key in the body; for the keys . and .. that a URL cannot end in',
  ...COMMON,
  body: store.storeKeyOperation,
  bodyBytes: LIMITS.storeBodyBytes,
  response: store.storeKeyResult,
} as const

/** Each route exists below a sandbox's path, and without it for callers whose token names the sandbox. */
export const storeRoutes = tagged('store', {
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
})
