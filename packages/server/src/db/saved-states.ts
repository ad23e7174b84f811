import type { Db } from './db.ts'
import type { PatchRunRecord } from './patches.ts'
import type { SandboxRecord } from './sandboxes.ts'
import type { ServiceRecord } from './services.ts'
import { addValue } from './store.ts'
import { Table } from './table.ts'

/** Fields of a record that a new sandbox takes over. */
export const SAVED_FIELDS = [
  'runtime',
  'image',
  'engine',
  'isolation',
  'metadata',
  'project',
  'env',
  'resources',
  'network',
  'user',
  'workdir',
  'storeAccess',
  'keepAwake',
  'timeouts',
  'baseSnapshot',
  'patchesOf',
  'root',
] as const satisfies (keyof SandboxRecord)[]

/** The layer of its root is the saved one, which is never written to again. `keepAwake` is absent in older ones: false. */
export type SavedSandbox = Omit<Pick<SandboxRecord, (typeof SAVED_FIELDS)[number]>, 'keepAwake'> & {
  keepAwake?: boolean
}

/** A saved state. The rows of its store are in table `saved_store`. */
export interface SavedRecord {
  id: string
  /** The sandbox that was saved; empty if it was imported. */
  sandboxId: string
  status: 'making' | 'ready'
  state: SavedSandbox
  services: Pick<ServiceRecord, 'name' | 'spec' | 'state'>[]
  patchRuns: PatchRunRecord[]
  memory: boolean
  frozenMs: number
  /** Null until it is measured. */
  sizeBytes: number | null
  createdAt: number
}

export class SavedTable extends Table<SavedRecord> {
  constructor(db: Db) {
    super(db, 'saved_states', {
      id: 'plain',
      sandboxId: 'plain',
      status: 'plain',
      state: 'json',
      services: 'json',
      patchRuns: 'json',
      memory: 'boolean',
      frozenMs: 'plain',
      sizeBytes: 'plain',
      createdAt: 'plain',
    })
  }

  setSize(id: string, sizeBytes: number): void {
    this.db.run('UPDATE saved_states SET size_bytes = ? WHERE id = ?', sizeBytes, id)
  }

  get(id: string): SavedRecord | undefined {
    return this.selectOne('WHERE id = ?', id)
  }

  /** Only some fields: the others may be megabytes. */
  all(): (Pick<SavedRecord, 'id' | 'memory'> & { root: SavedSandbox['root'] })[] {
    return this.db
      .all<{ id: string; memory: number; root: string }>(
        `SELECT id, memory, state -> '$.root' AS root FROM saved_states`,
      )
      .map(({ id, memory, root }) => ({ id, memory: memory === 1, root: JSON.parse(root) }))
  }

  /** Half made, or without a checkpoint or snapshot: of a fork that was cut off. */
  unnamed(): string[] {
    return this.db.column(
      `SELECT id FROM saved_states AS s WHERE status = 'making' OR NOT EXISTS (SELECT 1 FROM checkpoints WHERE saved_id = s.id)
       AND NOT EXISTS (SELECT 1 FROM snapshots WHERE saved_id = s.id)`,
    )
  }

  isNamed(id: string): boolean {
    const named = this.db.get(
      `SELECT 1 FROM checkpoints WHERE saved_id = ? UNION ALL SELECT 1 FROM snapshots WHERE saved_id = ?`,
      id,
      id,
    )
    return named !== undefined
  }

  /** Marks one that is about to be removed: it is not ready any more, and after a crash the next start removes it. */
  doom(id: string): void {
    this.db.run("UPDATE saved_states SET status = 'making' WHERE id = ?", id)
  }

  /** Removes up to `limit` of its keys; returns how many. */
  removeSome(id: string, limit: number): number {
    return this.db.run(
      'DELETE FROM saved_store WHERE rowid IN (SELECT rowid FROM saved_store WHERE saved_id = ? LIMIT ?)',
      id,
      limit,
    )
  }

  remove(id: string): void {
    this.db.run('DELETE FROM saved_states WHERE id = ?', id)
  }

  images(): string[] {
    return this.db.column(
      `SELECT DISTINCT state ->> '$.image' FROM saved_states WHERE state ->> '$.image' IS NOT NULL`,
    )
  }

  /** Whether the sandbox has any keys. */
  hasStore(sandboxId: string): boolean {
    return this.db.get('SELECT 1 FROM store WHERE sandbox_id = ? LIMIT 1', sandboxId) !== undefined
  }

  /** Copies the keys of a sandbox that have not expired. */
  copyStoreFrom(id: string, sandboxId: string, now: number): void {
    this.db.run(
      `INSERT INTO saved_store (saved_id, key, expires_at, bytes, value_id)
       SELECT ?, key, expires_at, bytes, value_id FROM store WHERE sandbox_id = ? AND (expires_at IS NULL OR expires_at > ?)`,
      id,
      sandboxId,
      now,
    )
  }

  /** Replaces the keys of the sandbox. Keys that have expired since are left out. */
  copyStoreTo(id: string, sandboxId: string, now: number): void {
    this.db.run('DELETE FROM store WHERE sandbox_id = ?', sandboxId)
    this.db.run(
      `INSERT INTO store (sandbox_id, key, expires_at, bytes, value_id)
       SELECT ?, key, expires_at, bytes, value_id FROM saved_store WHERE saved_id = ? AND (expires_at IS NULL OR expires_at > ?)`,
      sandboxId,
      id,
      now,
    )
  }

  /** Adds keys of an import. */
  setStore(id: string, rows: Iterable<{ key: string; value: string; expiresAt: number | null }>): void {
    const insert =
      'INSERT INTO saved_store (saved_id, key, expires_at, bytes, value_id) VALUES (?, ?, ?, ?, ?)'
    this.db.transaction(() => {
      for (const { key, value, expiresAt } of rows) {
        const bytes = Buffer.byteLength(key) + Buffer.byteLength(value)
        this.db.run(insert, id, key, expiresAt, bytes, addValue(this.db, value))
      }
    })
  }

  /** The next keys after `after`, in order. */
  storePage(
    id: string,
    after: string,
    limit: number,
  ): { key: string; value: string; expiresAt: number | null }[] {
    return this.db.all(
      `SELECT key, value, expires_at AS expiresAt FROM saved_store JOIN store_values ON store_values.id = value_id
       WHERE saved_id = ? AND key > ? ORDER BY key LIMIT ?`,
      id,
      after,
      limit,
    )
  }
}
