import type { TerminalInfo } from '@islet/contract'
import type { Db } from './db.ts'

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

/** What its commands have in common; of a pty, whether its shell keeps the sandbox awake. */
export interface TerminalSettings {
  keepAwake?: boolean
  cwd?: string
  env?: Record<string, string>
  user?: string
}

interface Row {
  id: string
  sandbox_id: string
  pty: number
  process_id: string | null
  encoding: TerminalInfo['encoding']
  settings: string
  created_at: number
}

export class TerminalTable {
  readonly #db: Db

  constructor(db: Db) {
    this.#db = db
  }

  insert(record: TerminalRecord): void {
    this.#db.run(
      'INSERT INTO terminals (id, sandbox_id, pty, process_id, encoding, settings, created_at) VALUES (?, ?, ?, ?, ?, ?, ?)',
      record.id,
      record.sandboxId,
      record.pty ? 1 : 0,
      record.processId,
      record.encoding,
      JSON.stringify(record.settings),
      record.createdAt,
    )
  }

  setProcess(id: string, processId: string): void {
    this.#db.run('UPDATE terminals SET process_id = ? WHERE id = ?', processId, id)
  }

  get(sandboxId: string, id: string): TerminalRecord | undefined {
    const row = this.#db.get<Row>('SELECT * FROM terminals WHERE sandbox_id = ? AND id = ?', sandboxId, id)
    return row && fromRow(row)
  }

  /** Oldest first. */
  list(sandboxId: string): TerminalRecord[] {
    return this.#db
      .all<Row>('SELECT * FROM terminals WHERE sandbox_id = ? ORDER BY created_at, id', sandboxId)
      .map(fromRow)
  }

  remove(id: string): void {
    this.#db.run('DELETE FROM terminals WHERE id = ?', id)
  }

  removeOf(sandboxId: string): void {
    this.#db.run('DELETE FROM terminals WHERE sandbox_id = ?', sandboxId)
  }

  /** Those of sandboxes that are gone. */
  sweep(): void {
    this.#db.run(
      `DELETE FROM terminals WHERE sandbox_id IN (SELECT id FROM sandboxes WHERE status IN ('stopped', 'failed'))`,
    )
  }
}

function fromRow(row: Row): TerminalRecord {
  return {
    id: row.id,
    sandboxId: row.sandbox_id,
    pty: row.pty === 1,
    processId: row.process_id,
    encoding: row.encoding,
    settings: JSON.parse(row.settings),
    createdAt: row.created_at,
  }
}
