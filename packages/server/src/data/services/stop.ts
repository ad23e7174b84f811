// SIGTERM to all of a process's session, some time, SIGKILL.
import { IsletError } from '@islet/contract'
import type { Processes } from '../processes.ts'

const SIGTERM = 15

/** Answers once it has ended. */
export async function endProcess(
  processes: Pick<Processes, 'signal' | 'get' | 'kill'>,
  sandboxId: string,
  processId: string,
  options: { timeoutMs: number },
): Promise<void> {
  try {
    await processes.signal(sandboxId, processId, SIGTERM, { group: true })
  } catch (error) {
    // It ended by itself meanwhile.
    if (error instanceof IsletError && ['invalid_state', 'process_not_found'].includes(error.code)) return
    throw error
  }
  const { status } = await processes.get(sandboxId, processId, { waitMs: options.timeoutMs })
  if (status === 'running') await processes.kill(sandboxId, processId)
}
