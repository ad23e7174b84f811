import type { PatchRun } from '@islet/contract'
import type { Db } from './db.ts'

export interface PatchRecord {
  id: string
  checkpointId: string
  sequence: number
  script: string
  description: string | null
  createdAt: number
}

export interface PatchRunRecord {
  patchId: string
  status: Exclude<PatchRun['status'], 'pending'>
  /** The process that runs it; its id is saved before it starts. Null in a copy of a sandbox in which it was running. */
  processId: string | null
  exitCode: number | null
  output: string
  reason: string | null
  at: number
}

const PATCH =
  'SELECT id, checkpoint_id AS checkpointId, sequence, script, description, created_at AS createdAt FROM patches'
const RUN =
  'SELECT patch_id AS patchId, status, process_id AS processId, exit_code AS exitCode, output, reason, at FROM patch_runs'

export class PatchTable {
  readonly #db: Db

  constructor(db: Db) {
    this.#db = db
  }

  /** After all patches of the checkpoint. */
  insert(patch: Omit<PatchRecord, 'sequence'>): PatchRecord {
    this.#db.run(
      `INSERT INTO patches (id, checkpoint_id, sequence, script, description, created_at)
       VALUES (?, ?, (SELECT coalesce(max(sequence), 0) + 1 FROM patches WHERE checkpoint_id = ?), ?, ?, ?)`,
      patch.id,
      patch.checkpointId,
      patch.checkpointId,
      patch.script,
      patch.description,
      patch.createdAt,
    )
    return this.get(patch.id)!
  }

  list(checkpointId: string): PatchRecord[] {
    return this.#db.all<PatchRecord>(`${PATCH} WHERE checkpoint_id = ? ORDER BY sequence`, checkpointId)
  }

  get(id: string): PatchRecord | undefined {
    return this.#db.get<PatchRecord>(`${PATCH} WHERE id = ?`, id)
  }

  /** False: there was none. */
  remove(checkpointId: string, id: string): boolean {
    return this.#db.run('DELETE FROM patches WHERE checkpoint_id = ? AND id = ?', checkpointId, id) > 0
  }

  /** In the order in which they began. */
  runs(sandboxId: string): PatchRunRecord[] {
    return this.#db.all<PatchRunRecord>(`${RUN} WHERE sandbox_id = ? ORDER BY rowid`, sandboxId)
  }

  saveRun(sandboxId: string, run: PatchRunRecord): void {
    this.#db.run(
      `INSERT INTO patch_runs (sandbox_id, patch_id, status, process_id, exit_code, output, reason, at)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?)
       ON CONFLICT (sandbox_id, patch_id) DO UPDATE SET status = excluded.status, process_id = excluded.process_id,
         exit_code = excluded.exit_code, output = excluded.output, reason = excluded.reason, at = excluded.at`,
      sandboxId,
      run.patchId,
      run.status,
      run.processId,
      run.exitCode,
      run.output,
      run.reason,
      run.at,
    )
  }

  removeRun(sandboxId: string, patchId: string): void {
    this.#db.run('DELETE FROM patch_runs WHERE sandbox_id = ? AND patch_id = ?', sandboxId, patchId)
  }

  /** Replaces all runs of the sandbox. */
  setRuns(sandboxId: string, runs: readonly PatchRunRecord[]): void {
    this.#db.run('DELETE FROM patch_runs WHERE sandbox_id = ?', sandboxId)
    for (const run of runs) this.saveRun(sandboxId, run)
  }
}
