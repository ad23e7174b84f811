// A sandbox's record: made from a request, changed by a patch, shown to callers.
import {
  type CreateSandboxParsed,
  DEFAULTS,
  newId,
  type Sandbox,
  type UpdateSandboxParsed,
} from '@islet/contract'
import type { SandboxRecord } from '../db/sandboxes.ts'
import type { EngineCapabilities } from '../engine/engine.ts'
import type { Image } from '../image/image.ts'

/** `image` is absent for engines that run on the machine's own files. */
export function newRecord(
  input: CreateSandboxParsed,
  options: {
    runtime: string
    image?: Image
    capabilities: Pick<EngineCapabilities, 'engine' | 'isolation'>
  },
): SandboxRecord {
  const { runtime, image, capabilities } = options
  const now = Date.now()
  return {
    id: newId('sandbox'),
    name: input.name ?? null,
    description: input.description ?? null,
    project: input.project ?? null,
    status: 'creating',
    reason: null,
    runtime,
    image: image?.name ?? null,
    engine: capabilities.engine,
    isolation: capabilities.isolation,
    metadata: input.metadata ?? {},
    env: { ...image?.defaults.env, ...input.env },
    resources: {
      memoryBytes: input.resources?.memory ?? DEFAULTS.memoryBytes,
      cpuMillis: input.resources?.cpu ?? DEFAULTS.cpuMillis,
      diskBytes: input.resources?.disk ?? DEFAULTS.diskBytes,
      pids: input.resources?.pids ?? DEFAULTS.pids,
    },
    network: input.network ?? { enabled: false },
    user: input.user ?? image?.defaults.user ?? '',
    workdir: input.workdir ?? image?.defaults.workdir ?? '',
    storeAccess: input.storeAccess ?? false,
    root: { layer: newId('layer'), trees: image?.trees ?? [] },
    shell: newId('shell'),
    createdAt: now,
    updatedAt: now,
    stoppedAt: null,
  }
}

export function patchRecord(record: SandboxRecord, patch: UpdateSandboxParsed): SandboxRecord {
  const env = { ...record.env }
  for (const [name, value] of Object.entries(patch.env ?? {})) {
    if (value === null) delete env[name]
    else env[name] = value
  }
  const { memory, cpu, disk, pids } = patch.resources ?? {}
  return {
    ...record,
    name: patch.name === undefined ? record.name : patch.name,
    description: patch.description === undefined ? record.description : patch.description,
    project: patch.project === undefined ? record.project : patch.project,
    metadata: patch.metadata ?? record.metadata,
    env,
    resources: {
      memoryBytes: memory ?? record.resources.memoryBytes,
      cpuMillis: cpu ?? record.resources.cpuMillis,
      diskBytes: disk ?? record.resources.diskBytes,
      pids: pids ?? record.resources.pids,
    },
    updatedAt: Date.now(),
  }
}

export function toSandbox(record: SandboxRecord): Sandbox {
  const { root: _root, shell: _shell, createdAt, updatedAt, stoppedAt, ...seen } = record
  return {
    ...seen,
    createdAt: new Date(createdAt).toISOString(),
    updatedAt: new Date(updatedAt).toISOString(),
    stoppedAt: stoppedAt === null ? null : new Date(stoppedAt).toISOString(),
  }
}
