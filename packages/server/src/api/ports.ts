import { IsletError } from '@islet/contract'
import type { ApiDeps, Handlers } from './route.ts'

export function portRoutes(_deps: ApiDeps) {
  const notYet = (): never => {
    throw new IsletError('not_supported')
  }
  return {
    listPorts: notYet,
    createPreview: notYet,
    listPreviews: notYet,
    deletePreview: notYet,
  } satisfies Partial<Handlers>
}
