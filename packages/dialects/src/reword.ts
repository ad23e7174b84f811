import { IsletError } from '@islet/sdk'

/** The error with the text that callers of another SDK know; code, hint and details stay. Errors without an answer of a server stay as they are. */
export function reworded(error: unknown, textOf: (error: IsletError) => string): unknown {
  if (!(error instanceof IsletError) || error.status === 0) return error
  const { code, hint, details } = error
  return new IsletError(code, textOf(error), { hint, details, cause: error })
}
