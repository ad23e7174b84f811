import { readFileSync } from 'node:fs'

/**
 * The oom_score_adj of a guest: the server's own, but at least 0, so that protecting the server from the OOM killer does not
 * protect sandboxes. Not lower than the server's own, which may need a privilege that the server lacks.
 */
export const GUEST_OOM_SCORE = Math.max(0, ownScore())

function ownScore(): number {
  try {
    return Number(readFileSync('/proc/self/oom_score_adj', 'utf8'))
  } catch {
    return 0
  }
}
