import type { Db } from './db.ts'
import { type Page, readCursor, toPage } from './page.ts'

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

const SUMMARY = `SELECT c.id, c.sandbox_id AS sandboxId, c.name, c.saved_id AS savedId, c.created_at AS createdAt,
    s.memory, s.size_bytes AS sizeBytes, s.frozen_ms AS frozenMs
  FROM checkpoints AS c JOIN saved_states AS s ON s.id = c.saved_id`

type SummaryRow = Omit<CheckpointSummary, 'memory'> & { memory: number }

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
      .all<SummaryRow>(`${SUMMARY} WHERE c.sandbox_id = ? ORDER BY c.created_at, c.id`, sandboxId)
      .map(fromRow)
  }

  /** Of all sandboxes, also of those that are gone; newest first. */
  page(query: { name?: string; sandbox?: string; limit: number; cursor?: string }): Page<CheckpointSummary> {
    const conditions: string[] = []
    const values: (string | number)[] = []
    const add = (condition: string, ...more: (string | number)[]) => {
      conditions.push(condition)
      values.push(...more)
    }
    const where = () => (conditions.length > 0 ? `WHERE ${conditions.join(' AND ')}` : '')
    if (query.name !== undefined) add('c.name = ?', query.name)
    if (query.sandbox !== undefined) add('c.sandbox_id = ?', query.sandbox)
    const { n: total } = this.#db.get<{ n: number }>(
      `SELECT count(*) AS n FROM checkpoints AS c ${where()}`,
      ...values,
    )!
    if (query.cursor !== undefined)
      add('(c.created_at, c.id) < (?, ?)', ...readCursor(query.cursor, 'checkpoint'))
    const rows = this.#db.all<SummaryRow>(
      `${SUMMARY} ${where()} ORDER BY c.created_at DESC, c.id DESC LIMIT ?`,
      ...values,
      query.limit + 1,
    )
    return toPage(rows.map(fromRow), total, query.limit)
  }

  /** Of sandboxes that are gone, made at `time` or before, and that no sandbox or saved state goes on from. */
  unused(time: number): CheckpointSummary[] {
    const rows = this.#db.all<SummaryRow>(
      `${SUMMARY} WHERE c.created_at <= ?
         AND NOT EXISTS (SELECT 1 FROM sandboxes AS own WHERE own.id = c.sandbox_id AND own.status != 'stopped')
         AND c.id NOT IN (SELECT origin ->> '$.id' FROM sandboxes
           WHERE status != 'stopped' AND origin ->> '$.id' IS NOT NULL)
         AND c.id NOT IN (SELECT patches_of FROM sandboxes WHERE status != 'stopped' AND patches_of IS NOT NULL)
         AND c.id NOT IN (SELECT state ->> '$.patchesOf' FROM saved_states WHERE state ->> '$.patchesOf' IS NOT NULL)
       ORDER BY c.created_at, c.id`,
      time,
    )
    return rows.map(fromRow)
  }

  /** Sandboxes that have a checkpoint besides these. */
  owners(besides: ReadonlySet<string>): Set<string> {
    const rows = this.#db.all<{ id: string; sandboxId: string }>(
      'SELECT id, sandbox_id AS sandboxId FROM checkpoints',
    )
    return new Set(rows.filter(({ id }) => !besides.has(id)).map(({ sandboxId }) => sandboxId))
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

function fromRow(row: SummaryRow): CheckpointSummary {
  return { ...row, memory: row.memory === 1 }
}
