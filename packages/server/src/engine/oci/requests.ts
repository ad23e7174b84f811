// The engine's words in the warden's.
import type { Lower } from '../../image/image.ts'
import type {
  BindFields,
  EtcFileRecord,
  LowerRecord,
  NetworkRecord,
  OkFields,
  TreeRecord,
} from '../../warden/messages.gen.ts'
import { type Warden, WardenError } from '../../warden/warden.ts'
import type { BindOptions, Root, Usage } from '../engine.ts'

const LOWER_KIND = { layer: 1, image: 2, 'host-usr': 3 }

export type NetworkRequest = NetworkRecord

export function bindRequest(pid: number, uidBase: number, cgroup: string, options: BindOptions): BindFields {
  const { root, hostname, limits } = options
  const { memoryBytes, cpuMillis, pids } = limits
  return {
    pid,
    uidBase,
    layer: root.layer,
    tree: treeRecords(root),
    hostname,
    cgroup,
    limits: { memoryBytes, cpuMillis, pids },
  }
}

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

/** Every process of a group, then the group. Of one that does not exist: nothing. */
export async function removeCgroup(warden: Warden, cgroup: string): Promise<void> {
  await warden.request('CGROUP_KILL', { cgroup }).catch((error) => {
    if (!(error instanceof WardenError && error.kind === 'NOT_FOUND')) throw error
  })
  await warden.request('CGROUP_DELETE', { cgroup })
}

function lowerRecord(lower: Lower): LowerRecord {
  const kind = LOWER_KIND[lower.kind]
  return lower.kind === 'host-usr' ? { kind } : { kind, name: lower.name, tree: lower.tree }
}
