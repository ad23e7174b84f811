import type { ProcessInfo } from '@islet/contract'
import type { Db } from './db.ts'

export interface ProcessRecord {
  id: string
  sandboxId: string
  command: string | string[]
  status: ProcessInfo['status']
  pid: number | null
  cwd: string
  user: string
  terminal: boolean
  /** The terminal it belongs to. */
  terminalId: string | null
  /** The service it belongs to. */
  service: string | null
  /** Bit n: signal n was sent on request to end it. */
  cancelSignals: number
  maxRunAfterDisconnectMs: number | null
  /** Whoever started it waits for its end. */
  foreground: boolean
  /** Its sandbox is not idle while it runs. */
  keepAwake: boolean
  startedAt: number
  endedAt: number | null
  outputBytes: number
  /** How much of it is kept: its end. */
  keepOutputBytes: number
  result: ProcessInfo['result']
}

interface Row {
  id: string
  sandbox_id: string
  command: string
  status: ProcessInfo['status']
  pid: number | null
  cwd: string
  user: string
  terminal: number
  terminal_id: string | null
  service: string | null
  cancel_signals: number
  max_run_after_disconnect_ms: number | null
  foreground: number
  keep_awake: number
  started_at: number
  ended_at: number | null
  output_bytes: number
  keep_output_bytes: number
  result: string | null
}

export class ProcessTable {
  readonly #db: Db

  constructor(db: Db) {
    this.#db = db
  }

  insert(record: ProcessRecord): void {
    this.#db.run(
      `INSERT INTO processes (id, sandbox_id, command, status, pid, cwd, user, terminal, terminal_id, service, cancel_signals,
         max_run_after_disconnect_ms, foreground, keep_awake, started_at, ended_at, output_bytes, keep_output_bytes, result)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
      record.id,
      record.sandboxId,
      JSON.stringify(record.command),
      record.status,
      record.pid,
      record.cwd,
      record.user,
      record.terminal ? 1 : 0,
      record.terminalId,
      record.service,
      record.cancelSignals,
      record.maxRunAfterDisconnectMs,
      record.foreground ? 1 : 0,
      record.keepAwake ? 1 : 0,
      record.startedAt,
      record.endedAt,
      record.outputBytes,
      record.keepOutputBytes,
      record.result && JSON.stringify(record.result),
    )
  }

  setCancelSignals(id: string, signals: number): void {
    this.#db.run('UPDATE processes SET cancel_signals = ? WHERE id = ?', signals, id)
  }

  /** Whether it was running: it ends once. */
  ended(
    id: string,
    end: Pick<ProcessRecord, 'status' | 'pid' | 'endedAt' | 'outputBytes' | 'result'>,
  ): boolean {
    const changes = this.#db.run(
      "UPDATE processes SET status = ?, pid = ?, ended_at = ?, output_bytes = ?, result = ? WHERE id = ? AND status = 'running'",
      end.status,
      end.pid,
      end.endedAt,
      end.outputBytes,
      end.result && JSON.stringify(end.result),
      id,
    )
    return changes > 0
  }

  /** Whether it was there. */
  remove(id: string): boolean {
    return this.#db.run('DELETE FROM processes WHERE id = ?', id) > 0
  }

  get(sandboxId: string, id: string): ProcessRecord | undefined {
    const row = this.#db.get<Row>('SELECT * FROM processes WHERE sandbox_id = ? AND id = ?', sandboxId, id)
    return row && fromRow(row)
  }

  /** Of whatever sandbox. */
  find(id: string): ProcessRecord | undefined {
    const row = this.#db.get<Row>('SELECT * FROM processes WHERE id = ?', id)
    return row && fromRow(row)
  }

  list(sandboxId: string, options: { status?: ProcessRecord['status']; limit: number }): ProcessRecord[] {
    const { status, limit } = options
    const rows = status
      ? this.#db.all<Row>(
          'SELECT * FROM processes WHERE sandbox_id = ? AND status = ? ORDER BY started_at DESC, id DESC LIMIT ?',
          sandboxId,
          status,
          limit,
        )
      : this.#db.all<Row>(
          'SELECT * FROM processes WHERE sandbox_id = ? ORDER BY started_at DESC, id DESC LIMIT ?',
          sandboxId,
          limit,
        )
    return rows.map(fromRow)
  }

  ids(sandboxId: string, options: { status?: ProcessRecord['status']; limit: number }): string[] {
    const { status, limit } = options
    const rows = this.#db.all<Pick<Row, 'id'>>(
      `SELECT id FROM processes WHERE sandbox_id = ? ${status ? 'AND status = ?' : ''}
       ORDER BY started_at DESC, id DESC LIMIT ?`,
      ...[sandboxId, ...(status ? [status] : []), limit],
    )
    return rows.map(({ id }) => id)
  }

  /** Oldest first. */
  idsOfTerminal(terminalId: string): string[] {
    return this.#db
      .all<Pick<Row, 'id'>>(
        'SELECT id FROM processes WHERE terminal_id = ? ORDER BY started_at, id',
        terminalId,
      )
      .map(({ id }) => id)
  }

  /** Every process still marked running, of one sandbox. */
  running(sandboxId: string): ProcessRecord[] {
    return this.list(sandboxId, { status: 'running', limit: -1 })
  }

  /** Forgets the ended processes beyond the newest `keep` of a sandbox. Answers with those that may have printed something. */
  removeOld(sandboxId: string, keep: number): string[] {
    const rows = this.#db.all<Pick<Row, 'id' | 'status' | 'output_bytes'>>(
      `SELECT id, status, output_bytes FROM processes WHERE sandbox_id = ? AND status != 'running'
       ORDER BY started_at DESC, id DESC LIMIT -1 OFFSET ?`,
      sandboxId,
      keep,
    )
    if (rows.length > 0) this.#db.transaction(() => rows.map(({ id }) => this.remove(id)))
    // What a lost one printed may not have been counted.
    return rows.filter((row) => row.output_bytes > 0 || row.status === 'lost').map(({ id }) => id)
  }
}

function fromRow(row: Row): ProcessRecord {
  return {
    id: row.id,
    sandboxId: row.sandbox_id,
    command: JSON.parse(row.command),
    status: row.status,
    pid: row.pid,
    cwd: row.cwd,
    user: row.user,
    terminal: row.terminal === 1,
    terminalId: row.terminal_id,
    service: row.service,
    cancelSignals: row.cancel_signals,
    maxRunAfterDisconnectMs: row.max_run_after_disconnect_ms,
    foreground: row.foreground === 1,
    keepAwake: row.keep_awake === 1,
    startedAt: row.started_at,
    endedAt: row.ended_at,
    outputBytes: row.output_bytes,
    keepOutputBytes: row.keep_output_bytes,
    result: row.result === null ? null : JSON.parse(row.result),
  }
}
