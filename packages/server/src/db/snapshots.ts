import type { Db } from './db.ts'
import { type Page, readCursor, toPage } from './page.ts'

export interface SnapshotRecord {
  id: string
  name: string | null
  tag: string | null
  description: string | null
  /** Null: deleted. */
  savedId: string | null
  sandboxId: string | null
  checkpointId: string | null
  parentId: string | null
  createdAt: number
  deletedAt: number | null
}

const SELECT = `SELECT id, name, tag, description, saved_id AS savedId, sandbox_id AS sandboxId,
  checkpoint_id AS checkpointId, parent_id AS parentId, created_at AS createdAt, deleted_at AS deletedAt FROM snapshots`

export class SnapshotTable {
  readonly #db: Db

  constructor(db: Db) {
    this.#db = db
  }

  /** If another has its tag, that one loses it. */
  save(record: SnapshotRecord): void {
    if (record.tag !== null)
      this.#db.run('UPDATE snapshots SET tag = NULL WHERE tag = ? AND id != ?', record.tag, record.id)
    this.#db.run(
      `INSERT INTO snapshots (id, name, tag, description, saved_id, sandbox_id, checkpoint_id, parent_id, created_at, deleted_at)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
       ON CONFLICT (id) DO UPDATE SET name = excluded.name, tag = excluded.tag, description = excluded.description,
         saved_id = excluded.saved_id, deleted_at = excluded.deleted_at`,
      record.id,
      record.name,
      record.tag,
      record.description,
      record.savedId,
      record.sandboxId,
      record.checkpointId,
      record.parentId,
      record.createdAt,
      record.deletedAt,
    )
  }

  /** Also a deleted one. */
  get(id: string): SnapshotRecord | undefined {
    return this.#db.get<SnapshotRecord>(`${SELECT} WHERE id = ?`, id)
  }

  tagged(tag: string): SnapshotRecord | undefined {
    return this.#db.get<SnapshotRecord>(`${SELECT} WHERE tag = ? AND deleted_at IS NULL`, tag)
  }

  /** Also deleted ones, oldest first. */
  children(parentId: string): SnapshotRecord[] {
    return this.#db.all<SnapshotRecord>(`${SELECT} WHERE parent_id = ? ORDER BY created_at, id`, parentId)
  }

  /** Those that were deleted and from which nothing descends any more: no snapshot, sandbox or saved state. */
  prune(): void {
    const sql = `DELETE FROM snapshots AS gone WHERE deleted_at IS NOT NULL
      AND NOT EXISTS (SELECT 1 FROM snapshots WHERE parent_id = gone.id)
      AND NOT EXISTS (SELECT 1 FROM sandboxes WHERE base_snapshot = gone.id AND status != 'stopped')
      AND NOT EXISTS (SELECT 1 FROM saved_states WHERE json_extract(state, '$.baseSnapshot') = gone.id)`
    // With each its parent may have lost the last one.
    while (this.#db.run(sql) > 0);
  }

  list(query: {
    name?: string
    tag?: string
    sandbox?: string
    limit: number
    cursor?: string
  }): Page<SnapshotRecord> {
    const conditions = ['deleted_at IS NULL']
    const values: (string | number)[] = []
    const add = (condition: string, ...more: (string | number)[]) => {
      conditions.push(condition)
      values.push(...more)
    }
    if (query.name !== undefined) add('name = ?', query.name)
    if (query.tag !== undefined) add('tag = ?', query.tag)
    if (query.sandbox !== undefined) add('sandbox_id = ?', query.sandbox)
    const where = () => conditions.join(' AND ')
    const total = this.#db.get<{ n: number }>(
      `SELECT count(*) AS n FROM snapshots WHERE ${where()}`,
      ...values,
    )!.n
    if (query.cursor !== undefined) add('(created_at, id) < (?, ?)', ...readCursor(query.cursor, 'snapshot'))
    const records = this.#db.all<SnapshotRecord>(
      `${SELECT} WHERE ${where()} ORDER BY created_at DESC, id DESC LIMIT ?`,
      ...values,
      query.limit + 1,
    )
    return toPage(records, total, query.limit)
  }
}
