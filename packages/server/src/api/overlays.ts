import { IsletError } from '@islet/contract'
import type { ApiDeps, Handlers } from './route.ts'

export function overlayRoutes(_deps: ApiDeps) {
  const notYet = (): never => {
    throw new IsletError('not_supported')
  }
  return {
    createOverlay: notYet,
    listOverlays: notYet,
    getOverlay: notYet,
    deleteOverlay: notYet,
  } satisfies Partial<Handlers>
}
