// Published states: bases for new sandboxes, with a name, a tag that moves, and a lineage.
import {
  type CreateSnapshotParsed,
  IsletError,
  isId,
  type ListSnapshotsParsed,
  newId,
  type SnapshotInfo,
  type SnapshotLineage,
  type SnapshotPage,
  type UpdateSnapshotParsed,
} from '@islet/contract'
import type { SavedRecord } from '../db/saved-states.ts'
import { type SnapshotRecord, SnapshotTable } from '../db/snapshots.ts'
import { assertSavable } from './checkpoints.ts'
import type { Fleet } from './fleet.ts'
import type { Saves } from './saves.ts'

export interface SnapshotsOptions {
  fleet: Fleet
  saves: Saves
}

export class Snapshots {
  readonly #fleet: Fleet
  readonly #saves: Saves
  readonly #table: SnapshotTable

  constructor({ fleet, saves }: SnapshotsOptions) {
    this.#fleet = fleet
    this.#saves = saves
    this.#table = new SnapshotTable(fleet.db)
  }

  /** Of a sandbox as it is now. */
  createOf(sandboxId: string, input: CreateSnapshotParsed): Promise<SnapshotInfo> {
    return this.#fleet.inTurn(sandboxId, async () => {
      const record = this.#fleet.record(sandboxId)
      assertSavable(record)
      const snapshot = newSnapshot(input, { sandboxId, parentId: record.baseSnapshot })
      const saved = await this.#saves.save(record, (made) => this.#insert(snapshot, made))
      this.#saves.measure(saved)
      return toInfo({ ...snapshot, savedId: saved.id }, saved)
    })
  }

  /** Of a checkpoint: both name the same saved state. */
  createFrom(checkpointId: string, saved: SavedRecord, input: CreateSnapshotParsed): SnapshotInfo {
    const { sandboxId, state } = saved
    const snapshot = newSnapshot(input, { sandboxId, checkpointId, parentId: state.baseSnapshot })
    this.#fleet.db.transaction(() => this.#insert(snapshot, saved))
    return toInfo({ ...snapshot, savedId: saved.id }, saved)
  }

  /** By id or tag. */
  record(ref: string): SnapshotRecord {
    const record = isId('snapshot', ref) ? this.#table.get(ref) : this.#table.tagged(ref)
    if (record && record.deletedAt === null) return record
    throw new IsletError('snapshot_not_found', `There is no snapshot ${ref.slice(0, 128)}.`)
  }

  /** What a new sandbox begins with. */
  resolve(ref: string): { id: string; saved: SavedRecord } {
    const record = this.record(ref)
    return { id: record.id, saved: this.#savedOf(record) }
  }

  get(ref: string): SnapshotInfo {
    const record = this.record(ref)
    return toInfo(record, this.#savedOf(record))
  }

  list(query: ListSnapshotsParsed): SnapshotPage {
    const { records, total, cursor } = this.#table.list({ limit: 100, ...query })
    return {
      snapshots: records.map((record) => toInfo(record, this.#savedOf(record))),
      total,
      ...(cursor && { cursor }),
    }
  }

  update(ref: string, patch: UpdateSnapshotParsed): SnapshotInfo {
    const record = { ...this.record(ref), ...patch }
    this.#fleet.db.transaction(() => this.#table.save(record))
    return toInfo(record, this.#savedOf(record))
  }

  /** Stays as a name while others descend from it. */
  async delete(ref: string): Promise<void> {
    const record = this.record(ref)
    this.#fleet.db.transaction(() => {
      if (this.#table.children(record.id).length === 0) this.#table.remove(record.id)
      else this.#table.save({ ...record, tag: null, savedId: null, deletedAt: Date.now() })
    })
    await this.#saves.discard(record.savedId!)
  }

  lineage(ref: string): SnapshotLineage {
    const record = this.record(ref)
    const lineage = [record]
    for (let at: SnapshotRecord | undefined = record; at?.parentId; ) {
      at = this.#table.get(at.parentId)
      if (at) lineage.push(at)
    }
    // It grows while it is walked.
    const found = [record]
    for (const next of found) found.push(...this.#table.children(next.id))
    return {
      lineage: lineage.map(toEntry),
      children: found.slice(1).map((child) => ({ ...toEntry(child), parentId: child.parentId! })),
    }
  }

  #insert(snapshot: SnapshotRecord, saved: SavedRecord): void {
    const { id, name, tag, sandboxId } = snapshot
    this.#table.save({ ...snapshot, savedId: saved.id })
    if (sandboxId !== null && this.#fleet.table.get(sandboxId))
      this.#fleet.events.add(sandboxId, 'snapshot.created', { id, name, tag })
  }

  #savedOf(record: SnapshotRecord): SavedRecord {
    return this.#saves.table.get(record.savedId!)!
  }
}

function newSnapshot(
  { name, tag, description }: CreateSnapshotParsed,
  from: { sandboxId: string | null; checkpointId?: string; parentId: string | null },
): SnapshotRecord {
  return {
    id: newId('snapshot'),
    name: name ?? null,
    tag: tag ?? null,
    description: description ?? null,
    savedId: null,
    sandboxId: from.sandboxId,
    checkpointId: from.checkpointId ?? null,
    parentId: from.parentId,
    createdAt: Date.now(),
    deletedAt: null,
  }
}

function toInfo(record: SnapshotRecord, saved: SavedRecord): SnapshotInfo {
  const { id, name, tag, description, sandboxId, checkpointId, parentId, createdAt } = record
  return {
    id,
    name,
    tag,
    description,
    sandboxId,
    checkpointId,
    parentId,
    runtime: saved.state.runtime,
    memory: saved.memory,
    sizeBytes: saved.sizeBytes,
    createdAt: new Date(createdAt).toISOString(),
  }
}

function toEntry({ id, name, tag, createdAt, deletedAt }: SnapshotRecord) {
  return { id, name, tag, createdAt: new Date(createdAt).toISOString(), deleted: deletedAt !== null }
}
