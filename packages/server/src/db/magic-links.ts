import type { Db } from './db.ts'
import { Table } from './table.ts'

export interface MagicLinkRecord {
  /** SHA-256 of the secret in its URL, as hex. */
  hash: string
  sandboxId: string
  redirectUrl: string
  expiresAt: number
  usedAt: number | null
}

export class MagicLinkTable extends Table<MagicLinkRecord> {
  constructor(db: Db) {
    const fields = { redirectUrl: 'plain', expiresAt: 'plain', usedAt: 'plain' } as const
    super(db, 'magic_links', { hash: 'plain', sandboxId: 'plain', ...fields }, ['hash'])
  }

  get(hash: string): MagicLinkRecord | undefined {
    return this.selectOne('WHERE hash = ?', hash)
  }

  /** Those that can still be used. */
  countUsable(sandboxId: string, now: number): number {
    return this.countWhere('WHERE sandbox_id = ? AND used_at IS NULL AND expires_at > ?', sandboxId, now)
  }

  /** False: it was used before, or is not there. */
  use(hash: string, now: number): boolean {
    return this.db.run('UPDATE magic_links SET used_at = ? WHERE hash = ? AND used_at IS NULL', now, hash) > 0
  }

  removeAll(sandboxId: string): void {
    this.db.run('DELETE FROM magic_links WHERE sandbox_id = ?', sandboxId)
  }

  /** Removes what expired before then, and what a crash left of stopped sandboxes. */
  sweep(expiredBefore: number): void {
    this.db.run(
      `DELETE FROM magic_links WHERE expires_at < ? OR sandbox_id IN (SELECT id FROM sandboxes WHERE status = 'stopped')`,
      expiredBefore,
    )
  }
}
