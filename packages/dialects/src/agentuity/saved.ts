// Disk checkpoints and snapshots.
import {
  type CheckpointInfo,
  type Islet,
  IsletError,
  type Sandbox,
  type SnapshotInfo as Snapshot,
} from '@islet/sdk'
import { given } from './info.ts'
import { runtimeIdOf } from './options.ts'

/** A named restore point of one sandbox. */
export interface DiskCheckpoint {
  id: string
  name: string
  createdAt: string
  restore(): Promise<void>
  delete(): Promise<void>
}

export interface SnapshotInfo {
  snapshotId: string
  runtimeId: string
  name?: string
  description?: string
  tag?: string
  sizeBytes?: number
  parentSnapshotId?: string
  createdAt: string
}

export interface SnapshotCreateOptions {
  name?: string
  description?: string
  tag?: string
}

export interface SnapshotListParams {
  sandboxId?: string
  limit?: number
  offset?: number
}

/** Which snapshot: its id or tag, or else a name, with a tag if several have the name. */
export interface SnapshotLineageParams {
  snapshot?: string
  name?: string
  tag?: string
  limit?: number
}

export function toCheckpoint(sandbox: Sandbox, { id, name, createdAt }: CheckpointInfo): DiskCheckpoint {
  return {
    id,
    name,
    createdAt,
    restore: async () => {
      await sandbox.restoreCheckpoint(id)
    },
    delete: () => sandbox.deleteCheckpoint(id),
  }
}

export function toSnapshot(snapshot: Snapshot): SnapshotInfo {
  const { id, name, tag, description, parentId, runtime, sizeBytes, createdAt } = snapshot
  return {
    snapshotId: id,
    runtimeId: runtimeIdOf(runtime),
    ...given({ name, description, tag, sizeBytes, parentSnapshotId: parentId }),
    createdAt,
  }
}

export interface SnapshotLineageEntry {
  snapshotId: string
  name?: string
  tag?: string
  /** The entry after this one. */
  parentSnapshotId?: string
  /** Deleted, but others are built on it. */
  deleted: boolean
  createdAt: string
}

/** The snapshot itself, its parent, and so on. */
export async function lineageOf(
  islet: Islet,
  { snapshot, name, tag, limit }: SnapshotLineageParams,
): Promise<{ lineage: SnapshotLineageEntry[]; total: number }> {
  const ref = snapshot ?? (await islet.snapshots.list({ name, tag, limit: 1 })).snapshots[0]?.id
  if (ref === undefined)
    throw new IsletError(
      'snapshot_not_found',
      `There is no snapshot ${[name, tag].filter(Boolean).join(':')}.`,
    )
  const { lineage } = await islet.snapshots.lineage(ref)
  const entries = lineage.map(({ id, name, tag, deleted, createdAt }, at) => ({
    snapshotId: id,
    ...given({ name, tag, parentSnapshotId: lineage[at + 1]?.id }),
    deleted,
    createdAt,
  }))
  return { lineage: entries.slice(0, limit), total: entries.length }
}
