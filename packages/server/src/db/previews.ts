import type { Db } from './db.ts'

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

export interface PreviewAuth {
  type: 'token'
  /** SHA-256 of the token, as hex. */
  hash: string
}

interface Row {
  sandbox_id: string
  port: number
  domain: string | null
  auth: string | null
  listen_port: number | null
  created_at: number
}

export class PreviewTable {
  readonly #db: Db

  constructor(db: Db) {
    this.#db = db
  }

  all(): PreviewRecord[] {
    return this.#db.all<Row>('SELECT * FROM previews ORDER BY sandbox_id, port').map(fromRow)
  }

  save(record: PreviewRecord): void {
    this.#db.run(
      `INSERT INTO previews (sandbox_id, port, domain, auth, listen_port, created_at) VALUES (?, ?, ?, ?, ?, ?)
       ON CONFLICT (sandbox_id, port) DO UPDATE SET domain = excluded.domain, auth = excluded.auth, listen_port = excluded.listen_port`,
      record.sandboxId,
      record.port,
      record.domain,
      record.auth && JSON.stringify(record.auth),
      record.listenPort,
      record.createdAt,
    )
  }

  remove(sandboxId: string, port: number): void {
    this.#db.run('DELETE FROM previews WHERE sandbox_id = ? AND port = ?', sandboxId, port)
  }
}

function fromRow(row: Row): PreviewRecord {
  return {
    sandboxId: row.sandbox_id,
    port: row.port,
    domain: row.domain,
    auth: row.auth === null ? null : JSON.parse(row.auth),
    listenPort: row.listen_port,
    createdAt: row.created_at,
  }
}
