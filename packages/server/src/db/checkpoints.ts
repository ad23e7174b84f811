import type { Db } from './db.ts'

export interface CheckpointRecord {
  id: string
  sandboxId: string
  name: string
  savedId: string
  createdAt: number
}

/** With what its saved state says of itself, which is little of what it is. */
export interface CheckpointSummary extends CheckpointRecord {
  memory: boolean
  sizeBytes: number | null
  frozenMs: number
}

const SELECT =
  'SELECT id, sandbox_id AS sandboxId, name, saved_id AS savedId, created_at AS createdAt FROM checkpoints'

export class CheckpointTable {
  readonly #db: Db

  constructor(db: Db) {
    this.#db = db
  }

  insert(record: CheckpointRecord): void {
    this.#db.run(
      'INSERT INTO checkpoints (id, sandbox_id, name, saved_id, created_at) VALUES (?, ?, ?, ?, ?)',
      record.id,
      record.sandboxId,
      record.name,
      record.savedId,
      record.createdAt,
    )
  }

  get(id: string): CheckpointRecord | undefined {
    return this.#db.get<CheckpointRecord>(`${SELECT} WHERE id = ?`, id)
  }

  named(sandboxId: string, name: string): CheckpointRecord | undefined {
    return this.#db.get<CheckpointRecord>(`${SELECT} WHERE sandbox_id = ? AND name = ?`, sandboxId, name)
  }

  /** Oldest first. */
  list(sandboxId: string): CheckpointSummary[] {
    return this.#db
      .all<CheckpointRecord & { memory: number; sizeBytes: number | null; frozenMs: number }>(
        `SELECT c.id, c.sandbox_id AS sandboxId, name, saved_id AS savedId, c.created_at AS createdAt,
           memory, size_bytes AS sizeBytes, frozen_ms AS frozenMs
         FROM checkpoints AS c JOIN saved_states AS s ON s.id = saved_id
         WHERE c.sandbox_id = ? ORDER BY c.created_at, c.id`,
        sandboxId,
      )
      .map((row) => ({ ...row, memory: row.memory === 1 }))
  }

  count(sandboxId: string): number {
    return this.#db.get<{ n: number }>(
      'SELECT count(*) AS n FROM checkpoints WHERE sandbox_id = ?',
      sandboxId,
    )!.n
  }

  remove(id: string): void {
    this.#db.run('DELETE FROM checkpoints WHERE id = ?', id)
  }
}
