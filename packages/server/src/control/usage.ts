import type { SandboxUsage } from '@islet/contract'
import type { Fleet } from './fleet.ts'
import { isStill } from './lifecycle.ts'

const NOTHING = { memoryBytes: 0, memoryPeakBytes: 0, cpuUsec: 0, pids: 0, oomKills: 0 }

/** Of one that stands still too, without waking it. */
export async function usageOf(fleet: Fleet, id: string): Promise<SandboxUsage> {
  const record = fleet.record(id)
  const machine = isStill(record) ? await fleet.machine(id) : (await fleet.running(id)).machine
  const [usage, diskBytes] = await Promise.all([
    machine && record.memory === null ? fleet.engine.usage(machine.cell) : NOTHING,
    fleet.storage.usageBytes(record.root.layer),
  ])
  return { ...usage, diskBytes }
}
