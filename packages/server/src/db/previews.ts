import type { Db } from './db.ts'
import { Table } from './table.ts'

export interface PreviewRecord {
  sandboxId: string
  port: number
  /** A name of its own. */
  domain: string | null
  /** Null: open to whoever reaches it. */
  auth: PreviewAuth | null
  /** The port of this machine that it had last. */
  listenPort: number | null
  createdAt: number
}

interface PreviewAuth {
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
