// Ends everything that a run has started, also what left its process group.
//
// A run is a session of its own and has a random mark in its environment. A process that leaves the session (a daemon) keeps the mark, and
// one that clears its environment stays in the session; only a process that does both is not found. This needs /proc; elsewhere only the
// process group ends.
import { readdirSync, readFileSync } from 'node:fs'

export const MARK = 'AGENTIUM_RUN'
/** Processes may start others while they are killed. */
const ROUNDS = 20

export interface Run {
  /** The id of the process that the run started, which leads its group and session. */
  pid?: number
  /** The value of MARK, or its beginning. */
  mark: string
}

export function killAll({ pid, mark }: Run): void {
  if (pid !== undefined) kill(-pid)
  if (process.platform !== 'linux') return
  for (let round = 0; round < ROUNDS; round++) {
    const found = readdirSync('/proc').filter((id) => /^\d+$/.test(id) && belongs(id, pid, mark))
    if (found.length === 0) return
    for (const id of found) kill(Number(id))
  }
}

function belongs(id: string, session: number | undefined, mark: string): boolean {
  try {
    // After the name, which may contain anything: state, parent, group, session.
    const stat = readFileSync(`/proc/${id}/stat`, 'utf8')
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    if (fields[0] === 'Z' || fields[0] === 'X') return false
    if (session !== undefined && Number(fields[3]) === session) return true
    return `\0${readFileSync(`/proc/${id}/environ`, 'latin1')}`.includes(`\0${MARK}=${mark}`)
  } catch {
    // It has ended, or is not ours.
    return false
  }
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It has ended.
  }
}
