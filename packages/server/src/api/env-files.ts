import { IsletError } from '@islet/contract'
import type { ApiDeps, Handlers } from './route.ts'

export function envFileRoutes(_deps: ApiDeps) {
  const notYet = (): never => {
    throw new IsletError('not_supported')
  }
  return {
    readEnvFile: notYet,
    updateEnvFile: notYet,
    removeEnvKeys: notYet,
  } satisfies Partial<Handlers>
}
