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
  /** The last request. `again`: stop it, then start it; `gone`: stop it, then remove it. */
  goal: 'up' | 'down' | 'again' | 'gone'
  /** The absolute working directory of its commands. */
  path: string
  /** Its install command has succeeded, or there is none. */
  installed: boolean
  installId: string | null
  processId: string | null
  /** A process from the saved state that this record was copied from. It runs if memory was saved too, and has to be ended. */
  leftover?: string | null
  pid: number | null
  /** Given to the command as PORT. */
  assignedPort: number | null
  /** The port that it listens on. */
  port: number | null
  url: string | null
  reason: string | null
  restartCount: number
  healthy: boolean | null
  healthStatus: string | null
  /** When the current attempt to install or start began: later processes of the service belong to it. */
  attemptAt: number
  /** The start waits until then. */
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
