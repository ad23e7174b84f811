import { readFileSync } from 'node:fs'

/**
 * The oom_score_adj of a guest: that of the server, but not below 0, so that a server that is protected from the kernel's memory
 * killer does not protect sandboxes too. (To go below its own a server may lack the privilege.)
 */
export const GUEST_OOM_SCORE = Math.max(0, ownScore())

function ownScore(): number {
  try {
    return Number(readFileSync('/proc/self/oom_score_adj', 'utf8'))
  } catch {
    return 0
  }
}
