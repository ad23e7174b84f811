import type { ServiceInfo, StartServiceParsed } from '@islet/contract'
import type { Db } from './db.ts'

export interface ServiceRecord {
  sandboxId: string
  name: string
  spec: StartServiceParsed
  state: ServiceState
  createdAt: number
  updatedAt: number
}

export interface ServiceState {
  status: ServiceInfo['status']
  /** What was asked for last. `again`: stop it, then start it; `gone`: stop it, then forget it. */
  goal: 'up' | 'down' | 'again' | 'gone'
  /** Where its commands run, absolute. */
  path: string
  /** Its install command has succeeded, or there is none. */
  installed: boolean
  installId: string | null
  processId: string | null
  /** A process of the saved state that this record comes from, which runs if that has memory. It is not this service's. */
  leftover?: string | null
  pid: number | null
  /** Given to the command as PORT. */
  assignedPort: number | null
  /** Where it listens. */
  port: number | null
  url: string | null
  reason: string | null
  restartCount: number
  healthy: boolean | null
  healthStatus: string | null
  /** When the present attempt to install or to start began: a younger process of the service belongs to it. */
  attemptAt: number
  /** Until then the start waits. */
  notBefore: number
}

interface Row {
  sandbox_id: string
  name: string
  spec: string
  state: string
  created_at: number
  updated_at: number
}

export class ServiceTable {
  readonly #db: Db

  constructor(db: Db) {
    this.#db = db
  }

  /** Takes the place of one of that name. */
  save(record: ServiceRecord): void {
    this.#db.run(
      `INSERT INTO services (sandbox_id, name, spec, state, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?)
       ON CONFLICT (sandbox_id, name) DO UPDATE SET spec = excluded.spec, state = excluded.state,
         created_at = excluded.created_at, updated_at = excluded.updated_at`,
      record.sandboxId,
      record.name,
      JSON.stringify(record.spec),
      JSON.stringify(record.state),
      record.createdAt,
      record.updatedAt,
    )
  }

  get(sandboxId: string, name: string): ServiceRecord | undefined {
    const row = this.#db.get<Row>('SELECT * FROM services WHERE sandbox_id = ? AND name = ?', sandboxId, name)
    return row && fromRow(row)
  }

  /** Oldest first. */
  list(sandboxId: string): ServiceRecord[] {
    return this.#db
      .all<Row>('SELECT * FROM services WHERE sandbox_id = ? ORDER BY created_at, name', sandboxId)
      .map(fromRow)
  }

  remove(sandboxId: string, name: string): void {
    this.#db.run('DELETE FROM services WHERE sandbox_id = ? AND name = ?', sandboxId, name)
  }

  /** Those that a crash left of sandboxes that are gone. */
  sweep(): void {
    this.#db.run(
      `DELETE FROM services WHERE sandbox_id IN (SELECT id FROM sandboxes WHERE status = 'stopped')`,
    )
  }
}

function fromRow(row: Row): ServiceRecord {
  return {
    sandboxId: row.sandbox_id,
    name: row.name,
    spec: JSON.parse(row.spec),
    state: JSON.parse(row.state),
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  }
}
