import type { Db } from './db.ts'
import { Table } from './table.ts'

export interface SessionTokenRecord {
  id: string
  sandboxId: string
  /** SHA-256 of the value, as hex. */
  hash: string
  description: string | null
  createdAt: number
  expiresAt: number
  /** As far as it was saved. */
  lastUsedAt: number | null
}

export class SessionTokenTable extends Table<SessionTokenRecord> {
  constructor(db: Db) {
    super(db, 'session_tokens', {
      id: 'plain',
      sandboxId: 'plain',
      hash: 'plain',
      description: 'plain',
      createdAt: 'plain',
      expiresAt: 'plain',
      lastUsedAt: 'plain',
    })
  }

  byHash(hash: string): SessionTokenRecord | undefined {
    return this.selectOne('WHERE hash = ?', hash)
  }

  get(sandboxId: string, id: string): SessionTokenRecord | undefined {
    return this.selectOne('WHERE sandbox_id = ? AND id = ?', sandboxId, id)
  }

  /** Newest first. */
  list(sandboxId: string): SessionTokenRecord[] {
    return this.selectAll('WHERE sandbox_id = ? ORDER BY created_at DESC, id DESC', sandboxId)
  }

  count(sandboxId: string): number {
    return this.countWhere('WHERE sandbox_id = ?', sandboxId)
  }

  used(id: string, at: number): void {
    this.db.run('UPDATE session_tokens SET last_used_at = ? WHERE id = ?', at, id)
  }

  remove(id: string): void {
    this.db.run('DELETE FROM session_tokens WHERE id = ?', id)
  }

  removeAll(sandboxId: string): void {
    this.db.run('DELETE FROM session_tokens WHERE sandbox_id = ?', sandboxId)
  }

  removeExpired(sandboxId: string, now: number): void {
    this.db.run('DELETE FROM session_tokens WHERE sandbox_id = ? AND expires_at <= ?', sandboxId, now)
  }

  /** Removes what expired before then, and what a crash left of stopped sandboxes. */
  sweep(expiredBefore: number): void {
    this.db.run(
      `DELETE FROM session_tokens WHERE expires_at < ? OR sandbox_id IN (SELECT id FROM sandboxes WHERE status = 'stopped')`,
      expiredBefore,
    )
  }
}
