// Removes what an earlier server of this instance left: half-made cells, and cgroups and veths of dead cells.
import { readFileSync } from 'node:fs'
import { isRunning, type ProcessIdentity } from '../../lib/proc.ts'
import type { Warden } from '../../warden/warden.ts'
import type { Cells } from '../cells.ts'
import { removeCgroup } from './requests.ts'

interface SweepOptions {
  warden: Warden
  cells: Cells
  /** Ids of living cells. */
  keep: ReadonlySet<string>
  /** The veths of these cells. */
  veths: readonly string[]
}

export async function sweep({ warden, cells, keep, veths }: SweepOptions): Promise<void> {
  // In parallel: the warm pool of a crashed server may have a hundred cells, and each takes a moment to die.
  const dead = (await names(warden, 'CGROUP_LIST')).filter((cgroup) => !keep.has(cgroup))
  await Promise.all(dead.map((cgroup) => removeCgroup(warden, cgroup)))
  const wanted = new Set(veths)
  const unwanted = (await names(warden, 'VETH_LIST')).filter((veth) => !wanted.has(veth))
  await Promise.all(unwanted.map((veth) => warden.request('VETH_DELETE', { veth })))
  for (const id of await cells.list()) if (!keep.has(id)) cells.remove(id)
}

/** Whether the recorded process lives and has the recorded uid range. */
export function isCellProcess(process: ProcessIdentity | undefined, uidBase: number): boolean {
  if (!process || !isRunning(process)) return false
  const map = readProc(process.pid, 'uid_map')
  const [inside, outside] = map.trim().split(/\s+/)
  return inside === '0' && outside === String(uidBase)
}

/**
 * Whether `bind` was completed: then only an overlay is mounted at `/`. A waiting cell has its first root there, and a cell
 * whose bind was interrupted has both. It does not tell whose root it is; for a cell that was bound ahead its record does.
 */
export function hasRoot({ pid }: ProcessIdentity): boolean {
  const mounts = readProc(pid, 'mountinfo').split('\n')
  const roots = mounts.filter((line) => line.split(' ')[4] === '/')
  return roots.length > 0 && roots.every((line) => / - overlay /.test(line))
}

/** Synchronous for the reason of `readStat`; empty if there is no such process. */
function readProc(pid: number, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8')
  } catch {
    return ''
  }
}

async function names(warden: Warden, list: 'CGROUP_LIST' | 'VETH_LIST'): Promise<string[]> {
  return (await warden.request(list, {})).name ?? []
}
