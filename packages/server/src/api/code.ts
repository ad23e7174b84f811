import { IsletError } from '@islet/contract'
import type { ApiDeps, Handlers } from './route.ts'

export function codeRoutes(_deps: ApiDeps) {
  const notYet = (): never => {
    throw new IsletError('not_supported')
  }
  return {
    runCode: notYet,
  } satisfies Partial<Handlers>
}
