// Ends a process: SIGTERM to its session, some time, then SIGKILL.
import { setTimeout } from 'node:timers/promises'
import type { Guest } from '../../guest/guest.ts'
import { hasCode } from '../../lib/has-code.ts'
import type { Processes } from '../processes/processes.ts'

const SIGTERM = 15
const SIGKILL = 9
/** A killed process releases its port soon. */
const KILL_LOOKS = 100
const KILL_LOOK_MS = 20

/** Resolves once it has ended. */
export async function endProcess(
  processes: Pick<Processes, 'signal' | 'get' | 'kill'>,
  sandboxId: string,
  processId: string,
  options: { timeoutMs: number },
): Promise<void> {
  try {
    await processes.signal(sandboxId, processId, SIGTERM, { group: true })
  } catch (error) {
    // It has ended by itself.
    if (hasCode(error, 'invalid_state', 'process_not_found')) return
    throw error
  }
  const { status } = await processes.get(sandboxId, processId, { waitMs: options.timeoutMs })
  if (status === 'running') await processes.kill(sandboxId, processId)
}

/** Kills a process without a record. */
export async function killStranger(
  guest: Pick<Guest, 'signal' | 'processes'>,
  processId: string,
): Promise<void> {
  try {
    await guest.signal(processId, SIGKILL, { group: true })
  } catch (error) {
    if (hasCode(error, 'process_not_found')) return
    throw error
  }
  for (let look = 0; look < KILL_LOOKS; look++) {
    const all = await guest.processes()
    if (!all.some(({ id, running }) => id === processId && running)) return
    await setTimeout(KILL_LOOK_MS, undefined, { ref: false })
  }
}
