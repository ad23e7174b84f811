// A sandbox's record: made from a request, changed by a patch, shown to callers.
import {
  type CopySandboxParsed,
  type CreateSandboxParsed,
  DEFAULTS,
  newId,
  type Sandbox,
  type TimeoutsInfo,
  type TimeoutsParsed,
  type UpdateSandboxParsed,
} from '@islet/contract'
import type { SandboxRecord } from '../db/sandboxes.ts'
import type { SavedRecord } from '../db/saved-states.ts'
import type { EngineCapabilities } from '../engine/engine.ts'
import type { Image } from '../image/image.ts'
import type { Storage } from '../storage/storage.ts'
import type { Capacity } from './capacity.ts'
import { isPausedForDisk } from './lifecycle.ts'
import { movedPath, rootOver } from './saved/roots.ts'

const DEFAULT_TIMEOUTS: TimeoutsInfo = {
  idleMs: DEFAULTS.idleMs,
  executionMs: 0,
  pausedMs: 0,
  onIdle: 'hibernate',
}

/** Engines without a wall have no `image`. */
export function newRecord(
  input: CreateSandboxParsed,
  options: {
    runtime: string
    image?: Image
    capabilities: Pick<EngineCapabilities, 'engine' | 'isolation'>
    capacity?: Capacity
  },
): SandboxRecord {
  const { runtime, image, capabilities, capacity } = options
  return {
    ...fresh(input),
    runtime,
    image: image?.name ?? null,
    engine: capabilities.engine,
    isolation: capabilities.isolation,
    metadata: input.metadata ?? {},
    project: input.project ?? null,
    env: { ...image?.defaults.env, ...input.env },
    resources: patchResources(input.resources, capacity?.lower(DEFAULTS) ?? DEFAULTS),
    network: patchNetwork(input.network, { enabled: false, port: null }),
    user: input.user ?? image?.defaults.user ?? '',
    workdir: input.workdir ?? image?.defaults.workdir ?? '',
    storeAccess: input.storeAccess ?? false,
    keepAwake: input.keepAwake ?? false,
    timeouts: patchTimeouts(DEFAULT_TIMEOUTS, input.timeout),
    origin: null,
    baseSnapshot: null,
    patchesOf: null,
    root: { layer: newId('layer'), trees: image?.trees ?? [] },
  }
}

/** The record of a copy: as it was saved, changed by what the caller gave. */
export function copyRecord(
  saved: SavedRecord,
  input: CopySandboxParsed,
  options: Pick<SandboxRecord, 'origin'> &
    Partial<SandboxRecord> & {
      storage: Storage
      capacity: Capacity
      layer: string
    },
): SandboxRecord {
  const { storage, capacity, layer, ...given } = options
  const { state } = saved
  return {
    ...fresh(input),
    ...state,
    metadata: input.metadata ?? state.metadata,
    project: input.project ?? state.project,
    env: { ...state.env, ...input.env },
    resources: patchResources(input.resources, capacity.lower(state.resources)),
    network: patchNetwork(input.network, state.network),
    user: input.user ?? state.user,
    workdir: input.workdir ?? movedPath(state.workdir, state.root.layer, layer, storage),
    storeAccess: input.storeAccess ?? state.storeAccess,
    keepAwake: input.keepAwake ?? state.keepAwake ?? false,
    timeouts: patchTimeouts(state.timeouts, input.timeout),
    root: rootOver(state.root, layer, storage),
    ...given,
  }
}

function fresh(input: Pick<CreateSandboxParsed, 'name' | 'description'>) {
  const now = Date.now()
  return {
    id: newId('sandbox'),
    name: input.name ?? null,
    description: input.description ?? null,
    status: 'creating',
    reason: null,
    suspendedAt: null,
    memory: null,
    networkDue: false,
    oneShot: false,
    cell: newId('cell'),
    createdAt: now,
    updatedAt: now,
    stoppedAt: null,
  } as const
}

export function patchRecord(record: SandboxRecord, patch: UpdateSandboxParsed): SandboxRecord {
  const env = { ...record.env }
  for (const [name, value] of Object.entries(patch.env ?? {})) {
    if (value === null) delete env[name]
    else env[name] = value
  }
  return {
    ...record,
    name: patch.name === undefined ? record.name : patch.name,
    description: patch.description === undefined ? record.description : patch.description,
    project: patch.project === undefined ? record.project : patch.project,
    metadata: patch.metadata ?? record.metadata,
    env,
    resources: patchResources(patch.resources, record.resources),
    network: patchNetwork({ port: patch.network?.port }, record.network),
    keepAwake: patch.keepAwake ?? record.keepAwake,
    updatedAt: Date.now(),
  }
}

function patchResources(
  patch: CreateSandboxParsed['resources'],
  { memoryBytes, cpuMillis, diskBytes, pids }: SandboxRecord['resources'],
): SandboxRecord['resources'] {
  return {
    memoryBytes: patch?.memory ?? memoryBytes,
    cpuMillis: patch?.cpu ?? cpuMillis,
    diskBytes: patch?.disk ?? diskBytes,
    pids: patch?.pids ?? pids,
  }
}

function patchNetwork(
  patch: CreateSandboxParsed['network'],
  network: SandboxRecord['network'],
): SandboxRecord['network'] {
  const { port = network.port } = patch ?? {}
  const kept = port === network.port ? network : { port }
  return { ...kept, enabled: patch?.enabled ?? network.enabled, port }
}

export function patchTimeouts(timeouts: TimeoutsInfo, patch: TimeoutsParsed = {}): TimeoutsInfo {
  return {
    idleMs: patch.idle ?? timeouts.idleMs,
    executionMs: patch.execution ?? timeouts.executionMs,
    pausedMs: patch.paused ?? timeouts.pausedMs,
    onIdle: patch.onIdle ?? timeouts.onIdle,
  }
}

/** What callers see of a record, except the URL of its port: that depends on how they reach this server. */
export type SandboxView = Omit<Sandbox, 'url'>

export function toSandbox(record: SandboxRecord): SandboxView {
  const {
    root: _root,
    cell: _cell,
    memory: _memory,
    baseSnapshot: _base,
    patchesOf: _patches,
    networkDue: _due,
    ...rest
  } = record
  const { suspendedAt, createdAt, updatedAt, stoppedAt, network, ...seen } = rest
  const { status, timeouts } = record
  const terminates = status === 'paused' && timeouts.pausedMs > 0 && !isPausedForDisk(record)
  return {
    ...seen,
    network: { enabled: network.enabled, port: network.port },
    terminatesAt: terminates ? toIso((suspendedAt ?? 0) + timeouts.pausedMs) : null,
    createdAt: toIso(createdAt),
    updatedAt: toIso(updatedAt),
    stoppedAt: stoppedAt === null ? null : toIso(stoppedAt),
  }
}

const toIso = (ms: number): string => new Date(ms).toISOString()
