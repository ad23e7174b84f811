import { IsletError } from '@islet/contract'

export interface Drain {
  readonly draining: boolean
  begin(): void
  check(): void
}

/** Once begun, every new request is turned away; those that run go on. */
export function createDrain(): Drain {
  let draining = false
  return {
    get draining() {
      return draining
    },
    begin() {
      draining = true
    },
    check() {
      if (draining) throw new IsletError('draining')
    },
  }
}
