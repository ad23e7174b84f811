// Processes by identity: the kernel reuses pids, so a pid alone may name another process later.
import { readFileSync } from 'node:fs'

export interface ProcessIdentity {
  pid: number
  /** In clock ticks since boot, as in /proc/<pid>/stat. */
  startTime: number
  bootId: string
}

interface ProcessStat {
  parent: number
  session: number
  startTime: number
  dead: boolean
  /** User and system time, its own and that of children it has waited for. */
  cpuTicks: number
  residentPages: number
}

let bootId: string | undefined

export function identify(pid: number): ProcessIdentity {
  const stat = readStat(pid)
  if (!stat) throw new Error(`there is no process ${pid}`)
  return { pid, startTime: stat.startTime, bootId: thisBoot() }
}

/** Whether exactly this process is alive. A zombie is not. */
export function isRunning(identity: ProcessIdentity): boolean {
  if (identity.bootId !== thisBoot()) return false
  const stat = readStat(identity.pid)
  return stat !== undefined && stat.startTime === identity.startTime && !stat.dead
}

/** Synchronous: the kernel answers from memory, and a thread of the pool would take ten times as long. */
export function readStat(pid: number): ProcessStat | undefined {
  let text: string
  try {
    text = readFileSync(`/proc/${pid}/stat`, 'latin1')
  } catch {
    return undefined
  }
  // The second field is the name in parentheses, which may itself contain parentheses and spaces.
  const [state, ...fields] = text.slice(text.lastIndexOf(')') + 2).split(' ')
  const number = (index: number) => Number(fields[index])
  return {
    parent: number(0),
    session: number(2),
    startTime: number(18),
    dead: state === 'Z' || state === 'X',
    cpuTicks: number(10) + number(11) + number(12) + number(13),
    residentPages: number(20),
  }
}

/** Signals one process. Refuses 0 and negative pids, which mean groups to the kernel, and pid 1. */
export function signal(pid: number, name: NodeJS.Signals): void {
  if (!Number.isSafeInteger(pid) || pid <= 1) throw new Error(`${pid} is not a process to signal`)
  try {
    process.kill(pid, name)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}

function thisBoot(): string {
  bootId ??= readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
  return bootId
}
