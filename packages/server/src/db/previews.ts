import type { Db } from './db.ts'
import { Table } from './table.ts'

export interface PreviewRecord {
  sandboxId: string
  port: number
  /** Its own host name. */
  domain: string | null
  /** Null: no authentication. */
  auth: PreviewAuth | null
  /** The port of the host that it listened on last. */
  listenPort: number | null
  createdAt: number
}

export interface PreviewAuth {
  type: 'token'
  /** SHA-256 of the token, as hex. */
  hash: string
}

export class PreviewTable extends Table<PreviewRecord> {
  constructor(db: Db) {
    const fields = { domain: 'plain', auth: 'json?', listenPort: 'plain', createdAt: 'plain' } as const
    super(db, 'previews', { sandboxId: 'plain', port: 'plain', ...fields }, ['sandbox_id', 'port'])
  }

  all(): PreviewRecord[] {
    return this.selectAll('ORDER BY sandbox_id, port')
  }

  remove(sandboxId: string, port: number): void {
    this.db.run('DELETE FROM previews WHERE sandbox_id = ? AND port = ?', sandboxId, port)
  }
}
