// Checkpoints: named saved states of a sandbox, to restore or to create sandboxes from. They outlive their sandbox.
import {
  type CheckpointInfo,
  type CheckpointPage,
  type CopySandboxParsed,
  IsletError,
  isId,
  LIMITS,
  type ListCheckpointsParsed,
  newId,
} from '@islet/contract'
import { type CheckpointRecord, CheckpointTable } from '../../db/checkpoints.ts'
import type { SavedRecord } from '../../db/saved-states.ts'
import type { CreateOptions } from '../creation.ts'
import type { Fleet } from '../fleet.ts'
import { type SandboxView, toSandbox } from '../record.ts'
import type { Sandboxes } from '../sandboxes.ts'
import { restore } from './restore.ts'
import { type SavedStates, savable } from './saved-states.ts'

interface CheckpointsOptions {
  fleet: Fleet
  savedStates: SavedStates
  sandboxes: Sandboxes
}

export class Checkpoints {
  readonly #options: CheckpointsOptions
  readonly #fleet: Fleet
  readonly #savedStates: SavedStates
  readonly #table: CheckpointTable

  constructor(options: CheckpointsOptions) {
    this.#options = options
    this.#fleet = options.fleet
    this.#savedStates = options.savedStates
    this.#table = new CheckpointTable(options.fleet.db)
  }

  /** A running or suspended sandbox goes on as it was. Of a failed one the files are saved. */
  create(sandboxId: string, name: string): Promise<CheckpointInfo> {
    return this.#fleet.inTurn(sandboxId, async () => {
      const record = await savable(this.#fleet, sandboxId)
      this.#assertFree(sandboxId, name)
      const checkpoint = { id: newId('checkpoint'), sandboxId, name, createdAt: Date.now() }
      const saved = await this.#savedStates.save(record, {
        name: ({ id, memory, frozenMs }) => {
          this.#table.insert({ ...checkpoint, savedId: id })
          this.#fleet.events.add(sandboxId, 'checkpoint.created', {
            id: checkpoint.id,
            name,
            memory,
            frozenMs,
          })
        },
      })
      this.#savedStates.measure(saved)
      return toInfo({ ...saved, ...checkpoint })
    })
  }

  /** Oldest first. Also for a stopped sandbox. */
  list(sandboxId: string): CheckpointInfo[] {
    const records = isId('sandbox', sandboxId) ? this.#table.list(sandboxId) : []
    if (records.length === 0) this.#fleet.record(sandboxId)
    return records.map(toInfo)
  }

  /** Of all sandboxes, also stopped ones, newest first. */
  page(query: ListCheckpointsParsed): CheckpointPage {
    const { records, total, cursor } = this.#table.page(query)
    return { checkpoints: records.map(toInfo), total, ...(cursor && { cursor }) }
  }

  get(id: string): CheckpointInfo {
    return toInfo(this.record(id))
  }

  /** With `sandboxId`: only if it belongs to that sandbox. */
  record(id: string, sandboxId?: string): CheckpointRecord {
    const record = isId('checkpoint', id) ? this.#table.get(id) : undefined
    if (record && (sandboxId === undefined || record.sandboxId === sandboxId)) return record
    const where = sandboxId === undefined ? '' : ` of ${sandboxId}`
    throw new IsletError('checkpoint_not_found', `There is no checkpoint ${id.slice(0, 64)}${where}.`)
  }

  /** Its saved state. */
  saved(id: string): SavedRecord {
    return this.#savedOf(this.record(id))
  }

  async delete(sandboxId: string, id: string): Promise<void> {
    const record = this.record(id, sandboxId)
    this.#fleet.db.transaction(() => {
      this.#table.remove(id)
      if (this.#fleet.table.get(sandboxId))
        this.#fleet.events.add(sandboxId, 'checkpoint.deleted', { id, name: record.name })
    })
    await this.#savedStates.discard(record.savedId)
  }

  /** Takes the sandbox back to the checkpoint: its processes end, its services start again. */
  async restore(sandboxId: string, id: string): Promise<{ sandbox: SandboxView; memory: boolean }> {
    this.record(id, sandboxId)
    const restored = await this.#fleet.inTurn(sandboxId, async () => {
      const checkpoint = this.record(id, sandboxId)
      await using kept = await this.#savedStates.use(this.#savedOf(checkpoint))
      const { saved } = kept
      const data = { checkpoint: id, name: checkpoint.name }
      const { begun } = await restore(this.#fleet, this.#savedStates, { sandboxId, saved, data })
      this.#options.sandboxes.suspension.activity.begin(sandboxId)
      const leave = this.#options.sandboxes.keepAwake(sandboxId)
      begun.then(leave, leave)
      return { begun, memory: this.#savedStates.memoryOf(saved) !== undefined }
    })
    await restored.begun
    return { sandbox: toSandbox(this.#fleet.record(sandboxId)), memory: restored.memory }
  }

  /** Creates a sandbox from the checkpoint. */
  createSandbox(id: string, input: CopySandboxParsed, options: CreateOptions = {}): Promise<SandboxView> {
    const given = { origin: { kind: 'checkpoint', id }, patchesOf: id } as const
    return this.#options.sandboxes.createFrom(() => this.saved(id), input, given, options)
  }

  #assertFree(sandboxId: string, name: string): void {
    const found = this.#table.named(sandboxId, name)
    if (found) {
      throw new IsletError('conflict', `Sandbox ${sandboxId} has a checkpoint '${name}' already.`, {
        hint: 'Choose another name, or delete that one.',
        details: { checkpointId: found.id },
      })
    }
    if (this.#table.count(sandboxId) >= LIMITS.checkpoints)
      throw new IsletError('limit_exceeded', `A sandbox has at most ${LIMITS.checkpoints} checkpoints.`, {
        hint: 'Delete checkpoints that are not needed.',
      })
  }

  #savedOf(record: CheckpointRecord): SavedRecord {
    return this.#savedStates.table.get(record.savedId)!
  }
}

function toInfo(checkpoint: Omit<CheckpointRecord, 'savedId'>): CheckpointInfo {
  const { id, sandboxId, name, memory, sizeBytes, frozenMs, createdAt } = checkpoint
  return { id, sandboxId, name, memory, sizeBytes, frozenMs, createdAt: new Date(createdAt).toISOString() }
}
