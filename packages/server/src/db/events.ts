import type { EventType, SandboxEvent } from '@islet/contract'
import type { Db } from './db.ts'
import { Where } from './page.ts'

export interface EventQuery extends EventRange {
  limit: number
  offset?: number
  direction: 'asc' | 'desc'
}

export interface EventRange {
  /** Exclusive. */
  after?: number
  before?: number
  /** Inclusive and exclusive, in milliseconds. */
  from?: number
  to?: number
  types?: readonly EventType[]
}

interface Row {
  seq: number
  sandbox_id: string
  type: EventType
  data: string
  created_at: number
}

export class EventTable {
  readonly #db: Db

  constructor(db: Db) {
    this.#db = db
  }

  add(sandboxId: string, type: EventType, data: SandboxEvent['data']): void {
    this.#db.run(
      'INSERT INTO events (sandbox_id, type, data, created_at) VALUES (?, ?, ?, ?)',
      sandboxId,
      type,
      JSON.stringify(data),
      Date.now(),
    )
  }

  list(sandboxId: string, query: EventQuery): SandboxEvent[] {
    const where = among(sandboxId, query)
    const { direction, limit, offset = 0 } = query
    const order = `ORDER BY seq ${direction === 'asc' ? 'ASC' : 'DESC'} LIMIT ? OFFSET ?`
    return this.#db
      .all<Row>(`SELECT * FROM events ${where.sql} ${order}`, ...where.values, limit, offset)
      .map(fromRow)
  }

  count(sandboxId: string, range: EventRange): number {
    const where = among(sandboxId, range)
    return this.#db.value(`SELECT count(*) FROM events ${where.sql}`, ...where.values)!
  }

  /** Removes all but the newest `keep` of a sandbox. */
  prune(sandboxId: string, keep: number): void {
    this.#db.run(
      `DELETE FROM events WHERE sandbox_id = ? AND seq <=
       (SELECT seq FROM events WHERE sandbox_id = ? ORDER BY seq DESC LIMIT 1 OFFSET ?)`,
      sandboxId,
      sandboxId,
      keep,
    )
  }
}

function among(sandboxId: string, range: EventRange): Where {
  return new Where()
    .and('sandbox_id = ?', sandboxId)
    .and('seq > ?', range.after)
    .and('seq < ?', range.before)
    .and('created_at >= ?', range.from)
    .and('created_at < ?', range.to)
    .and('type IN (SELECT value FROM json_each(?))', range.types && JSON.stringify(range.types))
}

function fromRow(row: Row): SandboxEvent {
  return {
    id: String(row.seq),
    sandboxId: row.sandbox_id,
    type: row.type,
    data: JSON.parse(row.data),
    createdAt: new Date(row.created_at).toISOString(),
  }
}
