import { IsletError } from '@islet/contract'
import type { ApiDeps, Handlers } from './route.ts'

export function storeRoutes(_deps: ApiDeps) {
  const notYet = (): never => {
    throw new IsletError('not_supported')
  }
  return {
    listStore: notYet,
    batchStore: notYet,
    getStore: notYet,
    setStore: notYet,
    deleteStore: notYet,
    listOwnStore: notYet,
    batchOwnStore: notYet,
    getOwnStore: notYet,
    setOwnStore: notYet,
    deleteOwnStore: notYet,
  } satisfies Partial<Handlers>
}
