// The engine's words in the warden's.
import type { Lower } from '../../image/image.ts'
import type { Fields } from '../../wire/fields.ts'
import type { BindOptions, Limits, Usage } from '../engine.ts'

const LOWER_KIND = { layer: 1, image: 2, 'host-usr': 3 }

export function bindRequest(pid: number, uidBase: number, cgroup: string, options: BindOptions): Fields {
  const { root, hostname, limits } = options
  return {
    pid,
    uid_base: uidBase,
    layer: root.layer,
    tree: root.trees.map(({ tree, at, lowers }) => ({ tree, at, lower: lowers.map(lowerFields) })),
    hostname,
    cgroup,
    limits: limitFields(limits),
  }
}

export function limitFields(limits: Limits): Fields {
  return { memory_bytes: limits.memoryBytes, cpu_millis: limits.cpuMillis, pids: limits.pids }
}

export function usageOf(answer: Fields): Usage {
  const stat = (answer.stat ?? {}) as Record<string, number | undefined>
  return {
    memoryBytes: stat.memory_bytes ?? 0,
    memoryPeakBytes: stat.memory_peak_bytes ?? 0,
    cpuUsec: stat.cpu_usec ?? 0,
    pids: stat.pids ?? 0,
    oomKills: stat.oom_kills ?? 0,
  }
}

function lowerFields(lower: Lower): Fields {
  const kind = LOWER_KIND[lower.kind]
  return lower.kind === 'host-usr' ? { kind } : { kind, name: lower.name, tree: lower.tree }
}
