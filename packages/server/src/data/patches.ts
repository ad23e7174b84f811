// Scripts that belong to a checkpoint: each is run once in every sandbox made from it, in their order, when that is made or
// when it wakes.
import type { CreatePatchParsed, PatchInfo, PatchRun } from '@islet/contract'
import { IsletError, isId, LIMITS, newId } from '@islet/contract'
import type { Checkpoints } from '../control/checkpoints.ts'
import type { Beginning, Fleet, RunningSandbox, SandboxObserver } from '../control/fleet.ts'
import { type PatchRecord, PatchTable } from '../db/patches.ts'
import type { Log } from '../log.ts'
import type { Processes } from './processes.ts'

export interface PatchesOptions {
  fleet: Fleet
  checkpoints: Checkpoints
  processes: Processes
  log: Log
}

export class Patches implements SandboxObserver {
  readonly #options: PatchesOptions
  readonly #table: PatchTable

  constructor(options: PatchesOptions) {
    this.#options = options
    this.#table = new PatchTable(options.fleet.db)
    options.fleet.observe(this)
  }

  create(checkpointId: string, { script, description }: CreatePatchParsed): PatchInfo {
    this.#options.checkpoints.record(checkpointId)
    if (this.#table.list(checkpointId).length >= LIMITS.patches)
      throw new IsletError('limit_exceeded', `A checkpoint has at most ${LIMITS.patches} patches.`)
    const patch = { id: newId('patch'), checkpointId, script, description: description ?? null }
    return toInfo(this.#table.insert({ ...patch, createdAt: Date.now() }))
  }

  list(checkpointId: string): PatchInfo[] {
    this.#options.checkpoints.record(checkpointId)
    return this.#table.list(checkpointId).map(toInfo)
  }

  delete(checkpointId: string, id: string): void {
    this.#options.checkpoints.record(checkpointId)
    if (!isId('patch', id) || !this.#table.remove(checkpointId, id)) throw new IsletError('patch_not_found')
  }

  /** What became of them in this sandbox, and what is still to be done. */
  runs(_sandboxId: string): PatchRun[] {
    return []
  }

  async began(_sandbox: RunningSandbox, _how: Beginning): Promise<void> {}

  async gone(): Promise<void> {}
}

function toInfo(record: PatchRecord): PatchInfo {
  return { ...record, createdAt: new Date(record.createdAt).toISOString() }
}
