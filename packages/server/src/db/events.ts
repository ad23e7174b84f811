import type { EventType, SandboxEvent } from '@islet/contract'
import type { Db } from './db.ts'
import { Where } from './page.ts'

export interface EventQuery {
  limit: number
  direction: 'asc' | 'desc'
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
    const where = new Where()
      .and('sandbox_id = ?', sandboxId)
      .and('seq > ?', query.after)
      .and('seq < ?', query.before)
      .and('created_at >= ?', query.from)
      .and('created_at < ?', query.to)
      .and('type IN (SELECT value FROM json_each(?))', query.types && JSON.stringify(query.types))
    const order = `ORDER BY seq ${query.direction === 'asc' ? 'ASC' : 'DESC'} LIMIT ?`
    return this.#db
      .all<Row>(`SELECT * FROM events ${where.sql} ${order}`, ...where.values, query.limit)
      .map(fromRow)
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

function fromRow(row: Row): SandboxEvent {
  return {
    id: String(row.seq),
    sandboxId: row.sandbox_id,
    type: row.type,
    data: JSON.parse(row.data),
    createdAt: new Date(row.created_at).toISOString(),
  }
}
