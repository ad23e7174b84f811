// The outcome of a service after its sandbox was started: once it is known, or after a bounded time.
import { setTimeout } from 'node:timers/promises'
import type { RestoredSandbox } from '@islet/contract'
import type { ServiceState } from '../../db/services.ts'
import { hasCode } from '../../lib/has-code.ts'
import { hasEnded, isAtLeast } from './moves.ts'
import type { ServiceKey, ServiceRecords } from './records.ts'

export type ServiceOutcome = RestoredSandbox['services'][number]

/** An install may take longer: then the outcome is `started`. */
const START_WAIT_MS = 5000
/** A broken command ends soon; one that still runs after this time has started, whether it listens or not. */
const SETTLE_WAIT_MS = 1500

type Look = (record: { state: ServiceState }) => boolean

/** `begun` resolves when the start has changed the record. Undefined: the service was deleted. */
export async function outcomeOf(
  records: ServiceRecords,
  key: ServiceKey,
  { begun }: { begun: Promise<unknown> },
): Promise<ServiceOutcome | undefined> {
  await Promise.race([begun, setTimeout(START_WAIT_MS, undefined, { ref: false })])
  const runs: Look = ({ state }) => hasEnded(state) || isAtLeast(state.status, 'running')
  const isSettled: Look = ({ state }) => hasEnded(state) || state.status === 'ready'
  try {
    await records.wait(key, runs, { waitMs: START_WAIT_MS })
    const { state } = await records.wait(key, isSettled, { waitMs: SETTLE_WAIT_MS })
    return { name: key.name, ...told(state) }
  } catch (error) {
    if (hasCode(error, 'service_not_found')) return undefined
    throw error
  }
}

function told({ status, reason, restartCount }: ServiceState): Omit<ServiceOutcome, 'name'> {
  if (status === 'failed' || status === 'stopped') return { outcome: status, reason }
  if (status === 'starting' && restartCount > 0)
    return { outcome: 'failed', reason: `It ended ${restartCount} times and is being started again.` }
  return { outcome: 'started', reason: null }
}
