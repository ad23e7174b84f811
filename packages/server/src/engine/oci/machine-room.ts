// Keeps resources for the server and the machine: ceilings for all sandboxes together, and raised machine-wide kernel limits.
import { readFile, writeFile } from 'node:fs/promises'
import { machineLimits } from '../capacity.ts'
import type { Limits } from '../engine.ts'
import type { EngineLog } from './wall.ts'

/** Percent of what the machine has; `auto` leaves enough for the machine. */
export type Ceilings = Record<'memory' | 'cpu' | 'pids', number | 'auto'>

/** `auto` leaves at least this much memory to the server and the machine, but not more than half. */
const LEFT_BYTES = 512 * 1024 ** 2
/** CPU time needs no reserve: the machine has priority over sandboxes (native/warden/cgroup/ceiling.c). */
const AUTO = { memory: 90, cpu: 100, pids: 75 }

/** The limits of the parent cgroup of all sandboxes. */
export function ceilingOf(asked: Ceilings, machine = machineLimits()): Limits {
  const shareOf = (kind: keyof Ceilings, whole: number) =>
    Math.floor((whole * (asked[kind] === 'auto' ? AUTO[kind] : asked[kind])) / 100)
  const { memoryBytes } = machine
  const most = asked.memory === 'auto' ? Math.max(memoryBytes - LEFT_BYTES, memoryBytes / 2) : memoryBytes
  const cpuMillis = shareOf('cpu', machine.cpuMillis)
  return {
    memoryBytes: Math.min(shareOf('memory', memoryBytes), Math.floor(most)),
    // A quota that cannot be reached would only cost time.
    cpuMillis: cpuMillis < machine.cpuMillis ? cpuMillis : 0,
    pids: shareOf('pids', machine.pids),
  }
}

/**
 * Machine-wide kernel limits that a few sandboxes could use up together, each within its own limits. They are raised, never
 * lowered, to systemd's defaults if it has one: terminals, processes and open files take memory, which is limited per sandbox.
 */
const AT_LEAST: Record<string, bigint> = {
  'fs/file-max': 2n ** 63n - 1n,
  'kernel/pid_max': 2n ** 22n,
  'kernel/pty/max': 2n ** 18n,
}

export async function raiseMachineLimits(log: EngineLog, proc = '/proc/sys'): Promise<void> {
  for (const [name, least] of Object.entries(AT_LEAST)) {
    const path = `${proc}/${name}`
    try {
      if (BigInt((await readFile(path, 'utf8')).trim()) < least) await writeFile(path, String(least))
    } catch (error) {
      log.warn({ error }, `${name.replaceAll('/', '.')} of this machine could not be raised to ${least}.`)
    }
  }
}
