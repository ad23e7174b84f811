import { IsletError } from '@islet/contract'
import type { ApiDeps, Handlers } from './route.ts'

export function serviceRoutes(_deps: ApiDeps) {
  const notYet = (): never => {
    throw new IsletError('not_supported')
  }
  return {
    startService: notYet,
    listServices: notYet,
    getService: notYet,
    deleteService: notYet,
    stopService: notYet,
    restartService: notYet,
    serviceLogs: notYet,
  } satisfies Partial<Handlers>
}
