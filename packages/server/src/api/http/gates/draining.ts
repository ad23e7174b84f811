import { IsletError } from '@islet/contract'

interface Drain {
  /** Aborts when draining begins: endless answers end then. */
  readonly signal: AbortSignal
  begin(): void
  check(): void
}

/** After `begin` every new request is refused; running requests continue. */
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
