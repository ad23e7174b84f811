import type { ServiceInfo, StartServiceParsed } from '@islet/contract'
import type { Db } from './db.ts'
import { Table } from './table.ts'

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

export class ServiceTable extends Table<ServiceRecord> {
  constructor(db: Db) {
    const times = { createdAt: 'plain', updatedAt: 'plain' } as const
    const fields = { sandboxId: 'plain', name: 'plain', spec: 'json', state: 'json', ...times } as const
    super(db, 'services', fields, ['sandbox_id', 'name'])
  }

  get(sandboxId: string, name: string): ServiceRecord | undefined {
    return this.selectOne('WHERE sandbox_id = ? AND name = ?', sandboxId, name)
  }

  /** Oldest first. */
  list(sandboxId: string): ServiceRecord[] {
    return this.selectAll('WHERE sandbox_id = ? ORDER BY created_at, name', sandboxId)
  }

  remove(sandboxId: string, name: string): void {
    this.db.run('DELETE FROM services WHERE sandbox_id = ? AND name = ?', sandboxId, name)
  }

  /** Removes what a crash left of stopped sandboxes. */
  sweep(): void {
    this.db.run(
      `DELETE FROM services WHERE sandbox_id IN (SELECT id FROM sandboxes WHERE status = 'stopped')`,
    )
  }
}
