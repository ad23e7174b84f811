import type { Db } from './db.ts'
import { Where } from './page.ts'

export interface StoreRow {
  /** JSON. */
  value: string
  expiresAt: number | null
}

export interface StoreTotals {
  keys: number
  /** Size of keys and values in UTF-8. */
  bytes: number
}

interface StoredKey {
  sandboxId: string
  key: string
  bytes: number
}

/** Adds a value and returns its id, which rows refer to. Call it in the transaction that adds the first such row. */
export function addValue(db: Db, value: string): number {
  return db.value('INSERT INTO store_values (value) VALUES (?) RETURNING id', value)!
}

/** Keys are ordered by their UTF-8 bytes, which is the order of code points. A key may hold NUL, so no SQL text function is used. */
export class StoreTable {
  readonly #db: Db

  constructor(db: Db) {
    this.#db = db
  }

  get(sandboxId: string, key: string): StoreRow | undefined {
    return this.#db.get(
      `SELECT value, expires_at AS expiresAt FROM store JOIN store_values ON store_values.id = value_id
       WHERE sandbox_id = ? AND key = ?`,
      sandboxId,
      key,
    )
  }

  /** Size and expiry of a row, without reading its value. */
  measure(sandboxId: string, key: string): { bytes: number; expiresAt: number | null } | undefined {
    return this.#db.get(
      'SELECT bytes, expires_at AS expiresAt FROM store WHERE sandbox_id = ? AND key = ?',
      sandboxId,
      key,
    )
  }

  set(sandboxId: string, key: string, { value, expiresAt }: StoreRow): void {
    const bytes = Buffer.byteLength(key) + Buffer.byteLength(value)
    const put = () =>
      this.#db.run(
        `INSERT INTO store (sandbox_id, key, bytes, value_id, expires_at) VALUES (?, ?, ?, ?, ?)
         ON CONFLICT (sandbox_id, key) DO UPDATE
         SET bytes = excluded.bytes, value_id = excluded.value_id, expires_at = excluded.expires_at`,
        sandboxId,
        key,
        bytes,
        addValue(this.#db, value),
        expiresAt,
      )
    if (this.#db.isTransaction) put()
    else this.#db.transaction(put)
  }

  remove(sandboxId: string, key: string): void {
    this.#db.run('DELETE FROM store WHERE sandbox_id = ? AND key = ?', sandboxId, key)
  }

  /** Keys from `from` on, after `after` and before `to`; undefined is no limit. */
  keys(
    sandboxId: string,
    range: {
      from: string
      after: string | undefined
      to: string | undefined
      now: number
      limit: number
    },
  ): string[] {
    const { from, after, to, now, limit } = range
    const where = new Where()
      .and('sandbox_id = ?', sandboxId)
      .and('key >= ?', from)
      .and('key > ?', after)
      .and('key < ?', to)
      .and('(expires_at IS NULL OR expires_at > ?)', now)
    return this.#db.column(`SELECT key FROM store ${where.sql} ORDER BY key LIMIT ?`, ...where.values, limit)
  }

  totals(sandboxId: string): StoreTotals {
    return this.#db.get(
      `SELECT count(*) AS keys, coalesce(sum(bytes), 0) AS bytes FROM store WHERE sandbox_id = ?`,
      sandboxId,
    )!
  }

  /** Expired keys of all sandboxes, or of one. */
  expired(options: { now: number; limit: number; sandboxId?: string }): StoredKey[] {
    const { now, limit, sandboxId } = options
    const where = new Where().and('sandbox_id = ?', sandboxId).and('expires_at <= ?', now)
    const select = 'SELECT sandbox_id AS sandboxId, key, bytes FROM store'
    return this.#db.all(`${select} ${where.sql} LIMIT ?`, ...where.values, limit)
  }

  /** Removes up to `limit` keys of a sandbox; returns how many. */
  removeSome(sandboxId: string, limit: number): number {
    return this.#db.run(
      'DELETE FROM store WHERE sandbox_id = ? AND key IN (SELECT key FROM store WHERE sandbox_id = ? LIMIT ?)',
      sandboxId,
      sandboxId,
      limit,
    )
  }

  /** Stopped sandboxes that still have keys. */
  abandoned(): string[] {
    return this.#db.column(
      `SELECT id FROM sandboxes WHERE status = 'stopped' AND EXISTS (SELECT 1 FROM store WHERE sandbox_id = id)`,
    )
  }
}
