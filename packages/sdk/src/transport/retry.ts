import { IsletError } from '@islet/contract/client'
import { abortError, hasCode } from '../errors.ts'

export const DEFAULT_RETRIES = 3
const FIRST_DELAY_MS = 100
const MAX_DELAY_MS = 2000

/** Retries transient errors. */
export async function withRetries<T>(
  attempt: () => Promise<T>,
  options: { retries: number; signal?: AbortSignal | undefined },
): Promise<T> {
  for (let tried = 0; ; tried++) {
    try {
      return await attempt()
    } catch (error) {
      if (tried >= options.retries || !isTransient(error)) throw error
      await sleep(backoffMs(tried), options.signal)
    }
  }
}

/** The connection was lost, the same request is still running, or the server is busy or shutting down. */
export function isTransient(error: unknown): boolean {
  if (hasCode(error, 'connection_failed', 'idempotency_running')) return true
  return error instanceof IsletError && error.retryable && (error.status === 502 || error.status === 503)
}

/** Doubles each time, with jitter so that many clients do not return at the same instant. */
export function backoffMs(tried: number): number {
  return Math.min(MAX_DELAY_MS, FIRST_DELAY_MS * 2 ** tried) * (0.5 + Math.random() / 2)
}

export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(abortError(signal))
    const timer = setTimeout(finish, ms)
    signal?.addEventListener('abort', cancel, { once: true })
    function finish(): void {
      signal?.removeEventListener('abort', cancel)
      resolve()
    }
    function cancel(): void {
      clearTimeout(timer)
      reject(abortError(signal))
    }
  })
}
