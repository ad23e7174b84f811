import type { Db } from './db.ts'

export interface StoreRow {
  /** JSON. */
  value: string
  expiresAt: number | null
}

export interface StoreTotals {
  keys: number
  /** Of keys and values, in UTF-8. */
  bytes: number
}

export interface StoredKey {
  sandboxId: string
  key: string
  bytes: number
}

const BYTES = 'octet_length(key) + octet_length(value)'

/** Keys compare by their UTF-8 bytes, which is the order of code points. A key may hold NUL, so no text function touches one. */
export class StoreTable {
  readonly #db: Db

  constructor(db: Db) {
    this.#db = db
  }

  get(sandboxId: string, key: string): StoreRow | undefined {
    return this.#db.get(
      'SELECT value, expires_at AS expiresAt FROM store WHERE sandbox_id = ? AND key = ?',
      sandboxId,
      key,
    )
  }

  /** What a row takes and when it expires, without reading its value. */
  measure(sandboxId: string, key: string): { bytes: number; expiresAt: number | null } | undefined {
    return this.#db.get(
      `SELECT ${BYTES} AS bytes, expires_at AS expiresAt FROM store WHERE sandbox_id = ? AND key = ?`,
      sandboxId,
      key,
    )
  }

  set(sandboxId: string, key: string, { value, expiresAt }: StoreRow): void {
    this.#db.run(
      `INSERT INTO store (sandbox_id, key, value, expires_at) VALUES (?, ?, ?, ?)
       ON CONFLICT (sandbox_id, key) DO UPDATE SET value = excluded.value, expires_at = excluded.expires_at`,
      sandboxId,
      key,
      value,
      expiresAt,
    )
  }

  remove(sandboxId: string, key: string): void {
    this.#db.run('DELETE FROM store WHERE sandbox_id = ? AND key = ?', sandboxId, key)
  }

  /** Keys from `from` on and, unless undefined, before `to`. */
  keys(
    sandboxId: string,
    range: { from: string; to: string | undefined; now: number; limit: number },
  ): string[] {
    const { from, to, now, limit } = range
    const isAlive = '(expires_at IS NULL OR expires_at > ?) ORDER BY key LIMIT ?'
    const rows =
      to === undefined
        ? this.#db.all<{ key: string }>(
            `SELECT key FROM store WHERE sandbox_id = ? AND key >= ? AND ${isAlive}`,
            sandboxId,
            from,
            now,
            limit,
          )
        : this.#db.all<{ key: string }>(
            `SELECT key FROM store WHERE sandbox_id = ? AND key >= ? AND key < ? AND ${isAlive}`,
            sandboxId,
            from,
            to,
            now,
            limit,
          )
    return rows.map(({ key }) => key)
  }

  totals(sandboxId: string): StoreTotals {
    return this.#db.get(
      `SELECT count(*) AS keys, coalesce(sum(${BYTES}), 0) AS bytes FROM store WHERE sandbox_id = ?`,
      sandboxId,
    )!
  }

  /** Of all sandboxes, or of one. */
  expired(options: { now: number; limit: number; sandboxId?: string }): StoredKey[] {
    const { now, limit, sandboxId } = options
    const columns = `sandbox_id AS sandboxId, key, ${BYTES} AS bytes`
    return sandboxId === undefined
      ? this.#db.all(`SELECT ${columns} FROM store WHERE expires_at <= ? LIMIT ?`, now, limit)
      : this.#db.all(
          `SELECT ${columns} FROM store WHERE sandbox_id = ? AND expires_at <= ? LIMIT ?`,
          sandboxId,
          now,
          limit,
        )
  }

  /** Removes some of a sandbox's keys; answers how many. */
  removeSome(sandboxId: string, limit: number): number {
    return this.#db.run(
      'DELETE FROM store WHERE sandbox_id = ?1 AND key IN (SELECT key FROM store WHERE sandbox_id = ?1 LIMIT ?2)',
      sandboxId,
      limit,
    )
  }

  /** Sandboxes that are gone and still have keys. */
  abandoned(): string[] {
    return this.#db
      .all<{ id: string }>(
        `SELECT id FROM sandboxes WHERE status = 'stopped' AND EXISTS (SELECT 1 FROM store WHERE sandbox_id = id)`,
      )
      .map(({ id }) => id)
  }
}
