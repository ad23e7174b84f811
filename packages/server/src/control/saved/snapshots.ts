// Snapshots: published saved states from which sandboxes are created, with a name, a movable tag and a lineage.
import {
  type CreateSnapshotParsed,
  type ImportSnapshotParsed,
  IsletError,
  isId,
  type ListSnapshotsParsed,
  newId,
  type SnapshotInfo,
  type SnapshotLineage,
  type SnapshotPage,
  type UpdateSnapshotParsed,
} from '@islet/contract'
import type { SavedRecord } from '../../db/saved-states.ts'
import { type SnapshotRecord, SnapshotTable } from '../../db/snapshots.ts'
import type { Images } from '../../image/image.ts'
import type { Fleet } from '../fleet.ts'
import { flattened, stackOf } from './roots.ts'
import { type SavedStates, savable } from './saved-states.ts'
import { writeSnapshot } from './snapshot-file/export.ts'
import { readSnapshot } from './snapshot-file/import.ts'
import { splitImage } from './snapshot-file/packages.ts'

interface SnapshotsOptions {
  fleet: Fleet
  savedStates: SavedStates
  images: Images
}

export class Snapshots {
  readonly #fleet: Fleet
  readonly #savedStates: SavedStates
  readonly #images: Images
  readonly #table: SnapshotTable
  /** Running exports and imports. */
  readonly #transfers = new Set<Promise<unknown>>()
  readonly #closing = new AbortController()

  constructor({ fleet, savedStates, images }: SnapshotsOptions) {
    this.#fleet = fleet
    this.#savedStates = savedStates
    this.#images = images
    this.#table = new SnapshotTable(fleet.db)
  }

  /** Removes deleted snapshots that have no descendants. */
  start(): void {
    this.#table.prune()
  }

  /** Ends the exports and imports. */
  async close(): Promise<void> {
    this.#closing.abort(new IsletError('draining'))
    await Promise.allSettled(this.#transfers)
  }

  /** Of a sandbox as it is now. */
  createOf(sandboxId: string, input: CreateSnapshotParsed): Promise<SnapshotInfo> {
    return this.#fleet.inTurn(sandboxId, async () => {
      const record = await savable(this.#fleet, sandboxId)
      const snapshot = newSnapshot(input, { sandboxId, parentId: record.baseSnapshot })
      const saved = await this.#savedStates.save(record, { name: (made) => this.#insert(snapshot, made) })
      this.#savedStates.measure(saved)
      return toInfo({ ...snapshot, savedId: saved.id }, saved)
    })
  }

  /** Of a checkpoint: both refer to the same saved state. */
  async createFrom(
    checkpointId: string,
    saved: SavedRecord,
    input: CreateSnapshotParsed,
  ): Promise<SnapshotInfo> {
    const { sandboxId, state } = saved
    const snapshot = newSnapshot(input, { sandboxId, checkpointId, parentId: state.baseSnapshot })
    this.#fleet.db.transaction(() => this.#insert(snapshot, saved))
    await this.#fleet.db.sync()
    return toInfo({ ...snapshot, savedId: saved.id }, saved)
  }

  /** By id or tag. */
  record(ref: string): SnapshotRecord {
    const record = isId('snapshot', ref) ? this.#table.get(ref) : this.#table.tagged(ref)
    if (record && record.deletedAt === null) return record
    throw new IsletError('snapshot_not_found', `There is no snapshot ${ref.slice(0, 128)}.`)
  }

  /** For a new sandbox. */
  resolve(ref: string): { id: string; saved: SavedRecord } {
    const record = this.record(ref)
    return { id: record.id, saved: this.#savedOf(record) }
  }

  get(ref: string): SnapshotInfo {
    const record = this.record(ref)
    return toInfo(record, this.#savedOf(record))
  }

  list(query: ListSnapshotsParsed): SnapshotPage {
    const { records, total, cursor } = this.#table.list(query)
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

  /** Its record stays while others descend from it. */
  async delete(ref: string): Promise<void> {
    const record = this.record(ref)
    this.#fleet.db.transaction(() => {
      this.#table.save({ ...record, tag: null, savedId: null, deletedAt: Date.now() })
      this.#tell(record, 'snapshot.deleted')
    })
    await this.#savedStates.discard(record.savedId!)
    this.#table.prune()
  }

  /** The bytes of a snapshot file (snapshot-file/manifest.ts). The saved state is kept until the end. */
  async *export(ref: string): AsyncGenerator<Buffer> {
    const record = this.record(ref)
    const done = Promise.withResolvers<void>()
    this.#track(done.promise)
    try {
      await using kept = await this.#savedStates.use(this.#savedOf(record))
      yield* this.#write(record, kept.saved)
    } finally {
      done.resolve()
    }
  }

  async *#write(record: SnapshotRecord, saved: SavedRecord): AsyncGenerator<Buffer> {
    const { storage } = this.#fleet
    const images = this.#images
    // No record holds these layers: after a crash they are swept.
    const made: string[] = []
    try {
      const whole = saved.state.image === null ? undefined : await images.resolve(saved.state.image)
      const image = whole && (await splitImage(whole, { images, storage, made }))
      const stack = [...stackOf(saved.state.root), ...made]
      // Merged, so that a file that an upper layer deleted is not exported.
      const merged = storage.capabilities.stacks && stack.length > 1 ? newId('layer') : undefined
      if (merged) {
        made.push(merged)
        await storage.flatten(stack, merged)
      }
      const root = merged ? flattened(saved.state.root, merged) : saved.state.root
      const snapshot = toInfo(record, saved)
      const from = { table: this.#savedStates.table, storage, images, image }
      for await (const chunk of writeSnapshot({ snapshot, saved, root, ...from })) {
        this.#closing.signal.throwIfAborted()
        yield chunk
      }
    } finally {
      if (made.length > 0) await this.#fleet.dropLayers(made)
    }
  }

  /** Makes a snapshot from a file. The tag in the file is ignored: a tag moves only on request. */
  import(
    body: AsyncIterable<Buffer>,
    { name, tag, otherHost = false }: ImportSnapshotParsed,
    options: { signal: AbortSignal },
  ): Promise<SnapshotInfo> {
    return this.#track(
      this.#read(body, {
        name,
        tag,
        otherHost,
        signal: AbortSignal.any([options.signal, this.#closing.signal]),
      }),
    )
  }

  async #read(
    body: AsyncIterable<Buffer>,
    { name, tag, ...options }: ImportSnapshotParsed & { otherHost: boolean; signal: AbortSignal },
  ): Promise<SnapshotInfo> {
    const { disk, engine, storage } = this.#fleet
    let held: string | undefined
    const hold = (making: SavedRecord) => {
      this.#savedStates.begin(making)
      held = making.id
    }
    try {
      const { saved, snapshot: about } = await readSnapshot({
        ...options,
        body,
        hold,
        storage,
        engine: { engine: engine.capabilities.engine, isolation: engine.capabilities.isolation },
        table: this.#savedStates.table,
        assertStoreRoom: () => disk.assertStoreRoom(),
        images: this.#images,
      })
      options.signal.throwIfAborted()
      const given = {
        name: name ?? about.name ?? undefined,
        tag,
        description: about.description ?? undefined,
      }
      const snapshot = newSnapshot(given, { sandboxId: null, parentId: null })
      await this.#savedStates.finish(saved, (ready) => this.#insert(snapshot, ready))
      this.#savedStates.measure(saved)
      return toInfo({ ...snapshot, savedId: saved.id }, saved)
    } catch (error) {
      if (held) await this.#savedStates.discard(held)
      options.signal.throwIfAborted()
      throw error
    }
  }

  #track<T>(work: Promise<T>): Promise<T> {
    const tracked = work.finally(() => this.#transfers.delete(tracked))
    this.#transfers.add(tracked)
    return tracked
  }

  lineage(ref: string): SnapshotLineage {
    const record = this.record(ref)
    const lineage = [record]
    for (let at: SnapshotRecord | undefined = record; at?.parentId; ) {
      at = this.#table.get(at.parentId)
      if (at) lineage.push(at)
    }
    // The list grows while it is walked.
    const found = [record]
    for (const next of found) found.push(...this.#table.children(next.id))
    return {
      lineage: lineage.map(toEntry),
      children: found.slice(1).map((child) => ({ ...toEntry(child), parentId: child.parentId! })),
    }
  }

  #insert(snapshot: SnapshotRecord, saved: SavedRecord): void {
    this.#table.save({ ...snapshot, savedId: saved.id })
    this.#tell(snapshot, 'snapshot.created')
  }

  /** Adds an event to the sandbox that it was made of, if that still has a record. */
  #tell({ id, name, tag, sandboxId }: SnapshotRecord, type: 'snapshot.created' | 'snapshot.deleted'): void {
    if (sandboxId !== null && this.#fleet.table.get(sandboxId))
      this.#fleet.events.add(sandboxId, type, { id, name, tag })
  }

  #savedOf(record: SnapshotRecord): SavedRecord {
    return this.#savedStates.table.get(record.savedId!)!
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
