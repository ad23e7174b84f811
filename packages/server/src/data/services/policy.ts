// What to do after a service's command ended by itself.
import type { ProcessInfo, StartServiceParsed } from '@islet/contract'
import type { ServiceState } from '../../db/services.ts'

/** A command that ends at once must not keep the server busy. */
const MIN_RESTART_DELAY_MS = 20
const RESTART_DELAY_MS = 1000

type Verdict = { verb: 'stop' } | { verb: 'fail'; reason: string } | { verb: 'restart'; delayMs: number }

/** `why` says how it failed; absent: it succeeded. */
export function afterEnd(
  spec: StartServiceParsed,
  { restartCount }: Pick<ServiceState, 'restartCount'>,
  why?: string,
): Verdict {
  const { restartPolicy = 'never', maxRestarts = 0, restartDelay = RESTART_DELAY_MS } = spec
  const restarts = restartPolicy === 'always' || (restartPolicy === 'on-failure' && why !== undefined)
  if (!restarts) return why === undefined ? { verb: 'stop' } : { verb: 'fail', reason: why }
  if (maxRestarts === 0 || restartCount < maxRestarts)
    return { verb: 'restart', delayMs: Math.max(restartDelay, MIN_RESTART_DELAY_MS) }
  const times = restartCount === 1 ? 'once' : `${restartCount} times`
  return { verb: 'fail', reason: `It was restarted ${times}. ${why ?? 'It ended with exit code 0.'}` }
}

/** Undefined: it succeeded. */
export function whyEnded(subject: string, result: ProcessInfo['result']): string | undefined {
  if (!result) return `${subject} was lost.`
  const { exitCode, signal, oom } = result
  if (exitCode === 0) return undefined
  const cause = oom ? ', and the memory limit was reached' : ''
  return signal
    ? `${subject} was ended by ${signal}${cause}.`
    : `${subject} ended with exit code ${exitCode}${cause}.`
}
