// Failures of engine and storage as callers see them.
import { IsletError } from '@islet/contract'

export function asStartError(error: unknown): IsletError {
  const known = asStorageError(error)
  if (known instanceof IsletError) return known
  const { message = String(error) } = (error ?? {}) as { message?: string }
  return new IsletError('engine_unavailable', `The sandbox could not be started: ${message}`, {
    cause: error,
  })
}

/** A full disk has a code of its own; any other failure stays as it is. */
export function asStorageError(error: unknown): unknown {
  const { kind, code } = (error ?? {}) as { kind?: string; code?: string }
  const isFull = kind === 'NO_SPACE' || code === 'ENOSPC'
  return isFull ? new IsletError('server_disk_full', undefined, { cause: error }) : error
}
