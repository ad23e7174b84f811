import { IsletError } from '@islet/contract'

interface Drain {
  /** Aborted once begun: answers that have no end of their own end then. */
  readonly signal: AbortSignal
  begin(): void
  check(): void
}

/** Once begun, every new request is turned away; those that run go on. */
export function createDrain(): Drain {
  const controller = new AbortController()
  const { signal } = controller
  return {
    signal,
    begin: () => controller.abort(),
    check() {
      if (signal.aborted) throw new IsletError('draining')
    },
  }
}
