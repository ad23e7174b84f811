import type { SQLInputValue } from 'node:sqlite'
import {
  type ListProcessesParsed,
  OUTCOMES,
  type Outcome,
  type ProcessInfo,
  type ProcessKind,
} from '@islet/contract'
import type { Db } from './db.ts'
import { Where } from './page.ts'
import { Table } from './table.ts'

export interface ProcessRecord {
  id: string
  sandboxId: string
  command: string | string[]
  status: ProcessInfo['status']
  /** Null: it has not ended. */
  outcome: ProcessInfo['outcome']
  /** Why it was lost. */
  reason: string | null
  pid: number | null
  cwd: string
  user: string
  terminal: boolean
  /** The terminal it belongs to. */
  terminalId: string | null
  /** The service it belongs to. */
  service: string | null
  /** Bit n: signal n was sent by a cancel. */
  cancelSignals: number
  maxRunAfterDisconnectMs: number | null
  /** The caller that started it waits for its end. */
  foreground: boolean
  /** Its sandbox is not idle while it runs. */
  keepAwake: boolean
  startedAt: number
  endedAt: number | null
  outputBytes: number
  /** How many of the last bytes are kept. */
  keepOutputBytes: number
  result: ProcessInfo['result']
}

export interface ProcessQuery {
  kind?: ProcessKind
  status?: ListProcessesParsed['status']
  limit: number
  offset?: number
}

export class ProcessTable extends Table<ProcessRecord> {
  constructor(db: Db) {
    super(db, 'processes', {
      id: 'plain',
      sandboxId: 'plain',
      command: 'json',
      status: 'plain',
      outcome: 'plain',
      reason: 'plain',
      pid: 'plain',
      cwd: 'plain',
      user: 'plain',
      terminal: 'boolean',
      terminalId: 'plain',
      service: 'plain',
      cancelSignals: 'plain',
      maxRunAfterDisconnectMs: 'plain',
      foreground: 'boolean',
      keepAwake: 'boolean',
      startedAt: 'plain',
      endedAt: 'plain',
      outputBytes: 'plain',
      keepOutputBytes: 'plain',
      result: 'json?',
    })
  }

  setCancelSignals(id: string, signals: number): void {
    this.db.run('UPDATE processes SET cancel_signals = ? WHERE id = ?', signals, id)
  }

  /** False: it had ended already. */
  ended(
    id: string,
    end: Pick<ProcessRecord, 'status' | 'outcome' | 'reason' | 'pid' | 'endedAt' | 'outputBytes' | 'result'>,
  ): boolean {
    const changes = this.db.run(
      `UPDATE processes SET status = ?, outcome = ?, reason = ?, pid = ?, ended_at = ?, output_bytes = ?, result = ?
       WHERE id = ? AND status = 'running'`,
      end.status,
      end.outcome,
      end.reason,
      end.pid,
      end.endedAt,
      end.outputBytes,
      end.result && JSON.stringify(end.result),
      id,
    )
    return changes > 0
  }

  /** False: there was none. */
  remove(id: string): boolean {
    return this.db.run('DELETE FROM processes WHERE id = ?', id) > 0
  }

  get(sandboxId: string, id: string): ProcessRecord | undefined {
    return this.selectOne('WHERE sandbox_id = ? AND id = ?', sandboxId, id)
  }

  /** In any sandbox. */
  find(id: string): ProcessRecord | undefined {
    return this.selectOne('WHERE id = ?', id)
  }

  /** Newest first. */
  list(sandboxId: string, query: ProcessQuery): ProcessRecord[] {
    return this.selectAll(...newest(sandboxId, query))
  }

  ids(sandboxId: string, query: ProcessQuery): string[] {
    const [rest, ...values] = newest(sandboxId, query)
    return this.db.column(`SELECT id FROM processes ${rest}`, ...values)
  }

  count(sandboxId: string, query: Pick<ProcessQuery, 'status' | 'kind'>): number {
    const where = ofSandbox(sandboxId, query)
    return this.countWhere(where.sql, ...where.values)
  }

  /** Oldest first. */
  idsOfTerminal(terminalId: string): string[] {
    return this.db.column(
      'SELECT id FROM processes WHERE terminal_id = ? ORDER BY started_at, id',
      terminalId,
    )
  }

  /** All processes of a sandbox that are marked running. */
  running(sandboxId: string): ProcessRecord[] {
    return this.list(sandboxId, { status: 'running', limit: -1 })
  }

  /** Removes ended processes beyond the newest `keep` of a sandbox. Returns those that may have output. */
  removeOld(sandboxId: string, keep: number): string[] {
    const rows = this.db.all<Pick<ProcessRecord, 'id' | 'status' | 'outputBytes'>>(
      `SELECT id, status, output_bytes AS outputBytes FROM processes WHERE sandbox_id = ? AND status != 'running'
       ORDER BY started_at DESC, id DESC LIMIT -1 OFFSET ?`,
      sandboxId,
      keep,
    )
    if (rows.length > 0) this.db.transaction(() => rows.map(({ id }) => this.remove(id)))
    // The output of a lost process may not have been counted.
    return rows.flatMap(({ id, status, outputBytes }) => (outputBytes > 0 || status === 'lost' ? id : []))
  }
}

function newest(sandboxId: string, query: ProcessQuery): [rest: string, ...SQLInputValue[]] {
  const { limit, offset = 0 } = query
  const where = ofSandbox(sandboxId, query)
  return [`${where.sql} ORDER BY started_at DESC, id DESC LIMIT ? OFFSET ?`, ...where.values, limit, offset]
}

const KIND = `CASE WHEN service IS NOT NULL THEN 'service' WHEN terminal THEN 'terminal' WHEN foreground THEN 'command' ELSE 'job' END`

export function kindOf({ service, terminal, foreground }: ProcessRecord): ProcessKind {
  if (service !== null) return 'service'
  if (terminal) return 'terminal'
  return foreground ? 'command' : 'job'
}

function ofSandbox(sandboxId: string, { status, kind }: Pick<ProcessQuery, 'status' | 'kind'>): Where {
  const isOutcome = OUTCOMES.includes(status as Outcome)
  return new Where()
    .and('sandbox_id = ?', sandboxId)
    .and(isOutcome ? 'outcome = ?' : 'status = ?', status)
    .and(`${KIND} = ?`, kind)
}
