// Room for the server and the machine: what all sandboxes together may take, and what the kernel may have for everybody.
import { readFile, writeFile } from 'node:fs/promises'
import { machineLimits } from '../capacity.ts'
import type { Limits } from '../engine.ts'
import type { EngineLog } from './wall.ts'

/** Percent of what the machine has, or what leaves it enough. */
export type Ceilings = Record<'memory' | 'cpu' | 'pids', number | 'auto'>

/** The least memory that `auto` leaves to the server and the machine, if that is not more than half. */
const LEFT_BYTES = 512 * 1024 ** 2
/** Of CPU time the machine needs no part for itself alone: it comes first (native/warden/cgroup/ceiling.c). */
const AUTO = { memory: 90, cpu: 100, pids: 75 }

/** The limits of the group that all sandboxes are in. */
export function ceilingOf(asked: Ceilings, machine = machineLimits()): Limits {
  const shareOf = (kind: keyof Ceilings, whole: number) =>
    Math.floor((whole * (asked[kind] === 'auto' ? AUTO[kind] : asked[kind])) / 100)
  const { memoryBytes } = machine
  const most = asked.memory === 'auto' ? Math.max(memoryBytes - LEFT_BYTES, memoryBytes / 2) : memoryBytes
  const cpuMillis = shareOf('cpu', machine.cpuMillis)
  return {
    memoryBytes: Math.min(shareOf('memory', memoryBytes), Math.floor(most)),
    // A quota that nobody can reach costs time all the same.
    cpuMillis: cpuMillis < machine.cpuMillis ? cpuMillis : 0,
    pids: shareOf('pids', machine.pids),
  }
}

/**
 * Numbers of the kernel for the whole machine that a few sandboxes could use up between them, each within its own limits. They are raised
 * and never lowered, to what systemd has by default where it has one: each terminal, process and open file is memory, which is counted
 * for whoever has it.
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
