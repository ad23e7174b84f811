import type { Db } from './db.ts'

export interface CheckpointRecord {
  id: string
  sandboxId: string
  name: string
  savedId: string
  createdAt: number
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
  list(sandboxId: string): CheckpointRecord[] {
    return this.#db.all<CheckpointRecord>(`${SELECT} WHERE sandbox_id = ? ORDER BY created_at, id`, sandboxId)
  }

  remove(id: string): void {
    this.#db.run('DELETE FROM checkpoints WHERE id = ?', id)
  }
}
