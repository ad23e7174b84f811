import type { TerminalInfo } from '@islet/contract'
import type { Db } from './db.ts'
import { Table } from './table.ts'

export interface TerminalRecord {
  id: string
  sandboxId: string
  pty: boolean
  /** The shell of a pty; null while it is being started, and without a pty. */
  processId: string | null
  encoding: TerminalInfo['encoding']
  settings: TerminalSettings
  createdAt: number
}

/** Defaults for its commands. `keepAwake`: the shell of a pty keeps the sandbox awake. */
interface TerminalSettings {
  keepAwake?: boolean
  cwd?: string
  env?: Record<string, string>
  user?: string
}

export class TerminalTable extends Table<TerminalRecord> {
  constructor(db: Db) {
    super(db, 'terminals', {
      id: 'plain',
      sandboxId: 'plain',
      pty: 'boolean',
      processId: 'plain',
      encoding: 'plain',
      settings: 'json',
      createdAt: 'plain',
    })
  }

  setProcess(id: string, processId: string): void {
    this.db.run('UPDATE terminals SET process_id = ? WHERE id = ?', processId, id)
  }

  get(sandboxId: string, id: string): TerminalRecord | undefined {
    return this.selectOne('WHERE sandbox_id = ? AND id = ?', sandboxId, id)
  }

  /** Oldest first. */
  list(sandboxId: string): TerminalRecord[] {
    return this.selectAll('WHERE sandbox_id = ? ORDER BY created_at, id', sandboxId)
  }

  remove(id: string): void {
    this.db.run('DELETE FROM terminals WHERE id = ?', id)
  }

  removeOf(sandboxId: string): void {
    this.db.run('DELETE FROM terminals WHERE sandbox_id = ?', sandboxId)
  }

  /** Removes what a crash left of stopped and failed sandboxes. */
  sweep(): void {
    this.db.run(
      `DELETE FROM terminals WHERE sandbox_id IN (SELECT id FROM sandboxes WHERE status IN ('stopped', 'failed'))`,
    )
  }
}
