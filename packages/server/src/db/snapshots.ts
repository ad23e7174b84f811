import type { Db } from './db.ts'
import { BY_AGE, BY_NAME, type Page, type PageQuery, Where } from './page.ts'
import { Table } from './table.ts'

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

export class SnapshotTable extends Table<SnapshotRecord> {
  constructor(db: Db) {
    super(db, 'snapshots', {
      id: 'plain',
      name: 'plain',
      tag: 'plain',
      description: 'plain',
      savedId: 'plain',
      sandboxId: 'plain',
      checkpointId: 'plain',
      parentId: 'plain',
      createdAt: 'plain',
      deletedAt: 'plain',
    })
  }

  /** Takes its tag from the snapshot that has it. */
  override save(record: SnapshotRecord): void {
    if (record.tag !== null)
      this.db.run('UPDATE snapshots SET tag = NULL WHERE tag = ? AND id != ?', record.tag, record.id)
    super.save(record)
  }

  /** Also finds a deleted one. */
  get(id: string): SnapshotRecord | undefined {
    return this.selectOne('WHERE id = ?', id)
  }

  tagged(tag: string): SnapshotRecord | undefined {
    return this.selectOne('WHERE tag = ? AND deleted_at IS NULL', tag)
  }

  /** With deleted ones, oldest first. */
  children(parentId: string): SnapshotRecord[] {
    return this.selectAll('WHERE parent_id = ? ORDER BY created_at, id', parentId)
  }

  /** Removes deleted snapshots from which no snapshot, sandbox or saved state descends. */
  prune(): void {
    const sql = `DELETE FROM snapshots AS gone WHERE deleted_at IS NOT NULL
      AND NOT EXISTS (SELECT 1 FROM snapshots WHERE parent_id = gone.id)
      AND NOT EXISTS (SELECT 1 FROM sandboxes WHERE base_snapshot = gone.id AND status != 'stopped')
      AND NOT EXISTS (SELECT 1 FROM saved_states WHERE json_extract(state, '$.baseSnapshot') = gone.id)`
    // A removed one may have been the last child of its parent.
    while (this.db.run(sql) > 0);
  }

  list(query: PageQuery & { name?: string; tag?: string; sandbox?: string }): Page<SnapshotRecord> {
    const where = new Where()
      .and('deleted_at IS NULL')
      .and('name = ?', query.name)
      .and('tag = ?', query.tag)
      .and('sandbox_id = ?', query.sandbox)
    return this.selectPage('snapshot', where, query, { created: BY_AGE, name: BY_NAME })
  }
}
