import { IsletError } from '@islet/contract'
import type { ApiDeps, Handlers } from './route.ts'

export function watcherRoutes(_deps: ApiDeps) {
  const notYet = (): never => {
    throw new IsletError('not_supported')
  }
  return {
    createWatcher: notYet,
    listWatchers: notYet,
    getWatcher: notYet,
    deleteWatcher: notYet,
    watcherEvents: notYet,
  } satisfies Partial<Handlers>
}
