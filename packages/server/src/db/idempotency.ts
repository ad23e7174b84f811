import type { Db } from './db.ts'

const KEEP_MS = 24 * 3_600_000

/** The sandbox that an Idempotency-Key made; kept for a day. */
export class IdempotencyTable {
  readonly #db: Db

  constructor(db: Db) {
    this.#db = db
  }

  find(key: string): { fingerprint: string; sandboxId: string } | undefined {
    return this.#db.get(
      'SELECT fingerprint, sandbox_id AS sandboxId FROM idempotency WHERE key = ? AND created_at > ?',
      key,
      Date.now() - KEEP_MS,
    )
  }

  save(key: string, fingerprint: string, sandboxId: string): void {
    this.#db.run('DELETE FROM idempotency WHERE created_at <= ?', Date.now() - KEEP_MS)
    this.#db.run(
      'INSERT INTO idempotency (key, fingerprint, sandbox_id, created_at) VALUES (?, ?, ?, ?)',
      key,
      fingerprint,
      sandboxId,
      Date.now(),
    )
  }
}
