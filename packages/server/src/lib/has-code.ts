import { type ErrorCode, IsletError } from '@islet/contract'

/** Whether this is an IsletError with one of these codes. */
export function hasCode(error: unknown, ...codes: readonly ErrorCode[]): error is IsletError {
  return error instanceof IsletError && codes.includes(error.code)
}

/** For `catch`: undefined in place of these errors. */
export const ignoring =
  (...codes: readonly ErrorCode[]) =>
  (error: unknown): undefined => {
    if (!hasCode(error, ...codes)) throw error
  }
