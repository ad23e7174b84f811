// Takes away what an earlier server of this instance left: half-made cells, and whatever of a cell outlived it.
import { readFileSync } from 'node:fs'
import { isRunning, type ProcessIdentity } from '../../lib/proc.ts'
import type { Warden } from '../../warden/warden.ts'
import type { Cells } from '../cells.ts'
import { removeCgroup } from './requests.ts'

export interface SweepOptions {
  warden: Warden
  cells: Cells
  /** Ids of living cells. */
  keep: ReadonlySet<string>
  /** The veths those may have. */
  veths: readonly string[]
}

export async function sweep({ warden, cells, keep, veths }: SweepOptions): Promise<void> {
  // Side by side: a crashed server's warm pool may be a hundred, and each takes a moment to die.
  const dead = (await names(warden, 'CGROUP_LIST')).filter((cgroup) => !keep.has(cgroup))
  await Promise.all(dead.map((cgroup) => removeCgroup(warden, cgroup)))
  const wanted = new Set(veths)
  const unwanted = (await names(warden, 'VETH_LIST')).filter((veth) => !wanted.has(veth))
  await Promise.all(unwanted.map((veth) => warden.request('VETH_DELETE', { veth })))
  for (const id of await cells.list()) if (!keep.has(id)) cells.remove(id)
}

/** Whether the recorded process lives and has the uid range that the record says. */
export async function isCellProcess(process: ProcessIdentity | undefined, uidBase: number): Promise<boolean> {
  if (!process || !isRunning(process)) return false
  const map = readProc(process.pid, 'uid_map')
  const [inside, outside] = map.trim().split(/\s+/)
  return inside === '0' && outside === String(uidBase)
}

/**
 * Whether `bind` came to its end: then an overlay is all that is mounted at `/`. A cell that waits has a root of its own there, and
 * one whose bind was cut off has both. This says nothing about whose root it is: the record of one that was bound ahead does.
 */
export function hasRoot({ pid }: ProcessIdentity): boolean {
  const mounts = readProc(pid, 'mountinfo').split('\n')
  const roots = mounts.filter((line) => line.split(' ')[4] === '/')
  return roots.length > 0 && roots.every((line) => / - overlay /.test(line))
}

/** Here and now, as in `readStat`; nothing when there is no such process. */
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
