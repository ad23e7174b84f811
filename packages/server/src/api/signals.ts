import { IsletError } from '@islet/contract'
import type { ApiDeps, Handlers } from './route.ts'

export function signalRoutes(_deps: ApiDeps) {
  const notYet = (): never => {
    throw new IsletError('not_supported')
  }
  return {
    signals: notYet,
    emitSignal: notYet,
    signalStatus: notYet,
    startSignals: notYet,
    stopSignals: notYet,
    emitSignalInside: notYet,
  } satisfies Partial<Handlers>
}
