import { IsletError } from '@islet/contract'
import type { ApiDeps, Handlers } from './route.ts'

export function signedFileRoutes(_deps: ApiDeps) {
  const notYet = (): never => {
    throw new IsletError('not_supported')
  }
  return {
    batchFiles: notYet,
    signFile: notYet,
    downloadSigned: notYet,
    uploadSigned: notYet,
  } satisfies Partial<Handlers>
}
