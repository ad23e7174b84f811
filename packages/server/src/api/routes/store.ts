import { type StoreKeyOperationParsed, storeKey } from '@islet/contract'
import type { StoredValue } from '../../data/store.ts'
import { ownSandbox } from '../http/caller.ts'
import { validate } from '../http/validate.ts'
import { type ApiDeps, type Handlers, JsonText } from '../route.ts'

export function storeRoutes({ store }: ApiDeps) {
  return {
    listStore: ({ params, query }) => store.list(params.id, query),
    batchStore: ({ params, body }) => store.batch(params.id, body.operations),
    storeOperation: ({ params, body }) => operate(params.id, body),
    getStore: ({ params }) => entry(store.get(params.id, keyOf(params))),
    setStore: ({ params, body }) => store.set(params.id, keyOf(params), body),
    deleteStore: ({ params }) => store.delete(params.id, keyOf(params)),
    listOwnStore: ({ caller, query }) => store.list(ownSandbox(caller), query),
    batchOwnStore: ({ caller, body }) => store.batch(ownSandbox(caller), body.operations),
    ownStoreOperation: ({ caller, body }) => operate(ownSandbox(caller), body),
    getOwnStore: ({ caller, params }) => entry(store.get(ownSandbox(caller), keyOf(params))),
    setOwnStore: ({ caller, params, body }) => store.set(ownSandbox(caller), keyOf(params), body),
    deleteOwnStore: ({ caller, params }) => store.delete(ownSandbox(caller), keyOf(params)),
  } satisfies Partial<Handlers>

  function operate(sandboxId: string, operation: StoreKeyOperationParsed) {
    if (operation.op === 'get') return entry(store.get(sandboxId, operation.key))
    if (operation.op === 'delete') return store.delete(sandboxId, operation.key)
    return store.set(sandboxId, operation.key, operation)
  }
}

/** Uses the stored JSON text, so that a large value is not parsed and printed again. */
function entry({ json, expiresAt }: StoredValue): JsonText {
  return new JsonText(`{"value":${json},"expires_at":${JSON.stringify(expiresAt)}}`)
}

function keyOf({ key }: { key: string }): string {
  return validate(storeKey, key, 'path')
}
