// Processes by identity: a pid alone names another process as soon as its first bearer is gone.
import { readFileSync } from 'node:fs'

export interface ProcessIdentity {
  pid: number
  /** In clock ticks since boot, as in /proc/<pid>/stat. */
  startTime: number
  bootId: string
}

let bootId: string | undefined

export async function identify(pid: number): Promise<ProcessIdentity> {
  const stat = await readStat(pid)
  if (!stat) throw new Error(`there is no process ${pid}`)
  return { pid, startTime: stat.startTime, bootId: thisBoot() }
}

/** Whether that very process lives. A zombie does not. */
export async function isRunning(identity: ProcessIdentity): Promise<boolean> {
  if (identity.bootId !== thisBoot()) return false
  const stat = await readStat(identity.pid)
  return stat !== undefined && stat.startTime === identity.startTime && !stat.dead
}

export interface ProcessStat {
  parent: number
  session: number
  startTime: number
  dead: boolean
}

export async function readStat(pid: number): Promise<ProcessStat | undefined> {
  let text: string
  try {
    // The kernel answers from memory: to hand that to another thread would take ten times as long.
    text = readFileSync(`/proc/${pid}/stat`, 'latin1')
  } catch {
    return undefined
  }
  // The second field is the name in parentheses and may hold anything, parentheses and spaces too.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
  return {
    parent: Number(fields[1]),
    session: Number(fields[3]),
    startTime: Number(fields[19]),
    dead: fields[0] === 'Z' || fields[0] === 'X',
  }
}

/** To one process. 0 and negative numbers mean many to the kernel, and 1 is the machine's own: never any of them. */
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
