// The machine's memory, CPU time and pids. In a container these are the container's limits, at the root of the cgroups it sees.
import { readFileSync } from 'node:fs'
import { availableParallelism, totalmem } from 'node:os'
import { join } from 'node:path'
import type { Limits } from './engine.ts'

export function machineLimits(roots: { cgroup?: string; proc?: string } = {}): Limits {
  const { cgroup = '/sys/fs/cgroup', proc = '/proc' } = roots
  const number = (...path: string[]) => {
    const text = read(join(...path))
    return /^\d+$/.test(text) ? Number(text) : Number.POSITIVE_INFINITY
  }
  return {
    memoryBytes: Math.min(
      totalmem(),
      number(cgroup, 'memory.max'),
      number(cgroup, 'memory/memory.limit_in_bytes'),
    ),
    cpuMillis: Math.min(availableParallelism() * 1000, quotaMillis(cgroup)),
    pids: Math.min(
      number(proc, 'sys/kernel/pid_max'),
      number(proc, 'sys/kernel/threads-max'),
      number(cgroup, 'pids.max'),
      number(cgroup, 'pids/pids.max'),
    ),
  }
}

/** `cpu.max` is `QUOTA PERIOD` or `max PERIOD`; cgroup v1 has a file for each, and -1 for no quota. */
function quotaMillis(cgroup: string): number {
  const v1 = ['quota', 'period'].map((name) => read(join(cgroup, `cpu/cpu.cfs_${name}_us`)))
  const [quota, period] = (read(join(cgroup, 'cpu.max')) || v1.join(' ')).split(' ').map(Number)
  return quota! > 0 && period! > 0 ? Math.floor((quota! * 1000) / period!) : Number.POSITIVE_INFINITY
}

/** Empty if there is no such file: the root cgroup of a machine has no limits. */
function read(path: string): string {
  try {
    return readFileSync(path, 'utf8').trim()
  } catch {
    return ''
  }
}
