// Turns the engine's types into the warden's.
import type { Lower } from '../../image/image.ts'
import type { EtcFileRecord, LowerRecord, OkFields, TreeRecord } from '../../warden/messages.gen.ts'
import { type Warden, WardenError } from '../../warden/warden.ts'
import type { Root, Usage } from '../engine.ts'

const LOWER_KIND = { layer: 1, image: 2, 'host-usr': 3 }

export function etcRecords(files: Record<string, string> = {}): EtcFileRecord[] {
  return Object.entries(files).map(([name, content]) => ({ name, content: Buffer.from(content) }))
}

export function treeRecords({ trees }: Root): TreeRecord[] {
  return trees.map(({ tree, at, lowers }) => ({ tree, at, lower: lowers.map(lowerRecord) }))
}

export function usageOf({ stat = {} }: OkFields): Usage {
  const { memoryBytes = 0, memoryPeakBytes = 0, cpuUsec = 0, pids = 0, oomKills = 0 } = stat
  return { memoryBytes, memoryPeakBytes, cpuUsec, pids, oomKills }
}

export function isNotFound(error: unknown): boolean {
  return error instanceof WardenError && error.kind === 'NOT_FOUND'
}

/** Kills the processes of a group, then removes it. Succeeds if there is no such group. */
export async function removeCgroup(warden: Warden, cgroup: string): Promise<void> {
  await warden.request('CGROUP_KILL', { cgroup }).catch((error) => {
    if (!isNotFound(error)) throw error
  })
  await warden.request('CGROUP_DELETE', { cgroup })
}

function lowerRecord(lower: Lower): LowerRecord {
  const kind = LOWER_KIND[lower.kind]
  return lower.kind === 'host-usr' ? { kind } : { kind, name: lower.name, tree: lower.tree }
}
