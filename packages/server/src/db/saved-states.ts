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

/** A sandbox as it was at one instant. The store's rows lie beside it. */
export interface SavedRecord {
  id: string
  /** Whose it was. */
  sandboxId: string
  status: 'making' | 'ready'
  state: SavedSandbox
  services: Pick<ServiceRecord, 'name' | 'spec' | 'state'>[]
  patchRuns: PatchRunRecord[]
  memory: boolean
  frozenMs: number
  /** Null until it was measured. */
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

  /** What each stands on; the rest of them may be megabytes. */
  all(): (Pick<SavedRecord, 'id' | 'memory'> & { root: SavedSandbox['root'] })[] {
    return this.db
      .all<{ id: string; memory: number; root: string }>(
        `SELECT id, memory, state -> '$.root' AS root FROM saved_states`,
      )
      .map(({ id, memory, root }) => ({ id, memory: memory === 1, root: JSON.parse(root) }))
  }

  /** Those that no checkpoint and no snapshot names: half made, or of a fork that was cut off. */
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

  /** It is about to be removed: as if it had never been ready. */
  doom(id: string): void {
    this.db.run("UPDATE saved_states SET status = 'making' WHERE id = ?", id)
  }

  /** Some of its keys; answers how many. */
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

  /** Whether there is anything to copy. */
  hasStore(sandboxId: string): boolean {
    return this.db.get('SELECT 1 FROM store WHERE sandbox_id = ? LIMIT 1', sandboxId) !== undefined
  }

  /** The keys of a sandbox that have not expired. */
  copyStoreFrom(id: string, sandboxId: string, now: number): void {
    this.db.run(
      `INSERT INTO saved_store (saved_id, key, expires_at, bytes, value_id)
       SELECT ?, key, expires_at, bytes, value_id FROM store WHERE sandbox_id = ? AND (expires_at IS NULL OR expires_at > ?)`,
      id,
      sandboxId,
      now,
    )
  }

  /** In place of what the sandbox has. What has expired since then stays so. */
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

  /** Of an imported one. */
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

  /** In the order of their keys, those after `after`. */
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
