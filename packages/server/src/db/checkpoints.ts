import type { SQLInputValue } from 'node:sqlite'
import type { Db } from './db.ts'
import { BY_AGE, type Page, type PageQuery, toPage, Where } from './page.ts'

export interface CheckpointRecord {
  id: string
  sandboxId: string
  name: string
  savedId: string
  createdAt: number
  // Of its saved state:
  memory: boolean
  sizeBytes: number | null
  frozenMs: number
}

const SELECT = `SELECT c.id, c.sandbox_id AS sandboxId, c.name, c.saved_id AS savedId, c.created_at AS createdAt,
    s.memory, s.size_bytes AS sizeBytes, s.frozen_ms AS frozenMs
  FROM checkpoints AS c JOIN saved_states AS s ON s.id = c.saved_id`

export class CheckpointTable {
  readonly #db: Db

  constructor(db: Db) {
    this.#db = db
  }

  insert(checkpoint: Omit<CheckpointRecord, 'memory' | 'sizeBytes' | 'frozenMs'>): void {
    const { id, sandboxId, name, savedId, createdAt } = checkpoint
    this.#db.run(
      'INSERT INTO checkpoints (id, sandbox_id, name, saved_id, created_at) VALUES (?, ?, ?, ?, ?)',
      ...[id, sandboxId, name, savedId, createdAt],
    )
  }

  get(id: string): CheckpointRecord | undefined {
    return this.#select('WHERE c.id = ?', id)[0]
  }

  named(sandboxId: string, name: string): CheckpointRecord | undefined {
    return this.#select('WHERE c.sandbox_id = ? AND c.name = ?', sandboxId, name)[0]
  }

  /** Oldest first. */
  list(sandboxId: string): CheckpointRecord[] {
    return this.#select('WHERE c.sandbox_id = ? ORDER BY c.created_at, c.id', sandboxId)
  }

  /** Of all sandboxes, also of stopped ones; newest first. */
  page(query: PageQuery & { name?: string; sandbox?: string }): Page<CheckpointRecord> {
    const where = new Where().and('c.name = ?', query.name).and('c.sandbox_id = ?', query.sandbox)
    return toPage(where, query, {
      kind: 'checkpoint',
      idColumn: 'c.id',
      sorts: { created: { ...BY_AGE, sql: 'c.created_at' } },
      count: (rest, ...values) =>
        this.#db.value<number>(`SELECT count(*) FROM checkpoints AS c ${rest}`, ...values)!,
      select: (rest, ...values) => this.#select(rest, ...values),
    })
  }

  /** Checkpoints of stopped sandboxes, made at `time` or before, that no sandbox or saved state depends on. */
  unused(time: number): CheckpointRecord[] {
    return this.#select(
      `WHERE c.created_at <= ?
         AND NOT EXISTS (SELECT 1 FROM sandboxes AS own WHERE own.id = c.sandbox_id AND own.status != 'stopped')
         AND c.id NOT IN (SELECT origin ->> '$.id' FROM sandboxes
           WHERE status != 'stopped' AND origin ->> '$.id' IS NOT NULL)
         AND c.id NOT IN (SELECT patches_of FROM sandboxes WHERE status != 'stopped' AND patches_of IS NOT NULL)
         AND c.id NOT IN (SELECT state ->> '$.patchesOf' FROM saved_states WHERE state ->> '$.patchesOf' IS NOT NULL)
       ORDER BY c.created_at, c.id`,
      time,
    )
  }

  /** Sandboxes that have a checkpoint besides these. */
  owners(besides: ReadonlySet<string>): Set<string> {
    const sql = `SELECT DISTINCT sandbox_id FROM checkpoints WHERE id NOT IN (SELECT value FROM json_each(?))`
    return new Set(this.#db.column<string>(sql, JSON.stringify([...besides])))
  }

  count(sandboxId: string): number {
    return this.#db.value('SELECT count(*) FROM checkpoints WHERE sandbox_id = ?', sandboxId)!
  }

  remove(id: string): void {
    this.#db.run('DELETE FROM checkpoints WHERE id = ?', id)
  }

  #select(rest: string, ...values: SQLInputValue[]): CheckpointRecord[] {
    const rows = this.#db.all<Omit<CheckpointRecord, 'memory'> & { memory: number }>(
      `${SELECT} ${rest}`,
      ...values,
    )
    return rows.map((row) => ({ ...row, memory: row.memory === 1 }))
  }
}
