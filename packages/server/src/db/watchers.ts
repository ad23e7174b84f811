import type { WatcherInfo } from '@islet/contract'
import type { Db } from './db.ts'

export interface WatcherRecord {
  id: string
  sandboxId: string
  path: string
  includeContent: boolean
  ignored: string[]
  encoding: WatcherInfo['encoding']
  /** Why it stopped; null while it is active. */
  reason: string | null
  createdAt: number
}

interface Row {
  id: string
  sandbox_id: string
  path: string
  include_content: number
  ignored: string
  encoding: WatcherInfo['encoding']
  reason: string | null
  created_at: number
}

export class WatcherTable {
  readonly #db: Db

  constructor(db: Db) {
    this.#db = db
  }

  insert(record: WatcherRecord): void {
    this.#db.run(
      `INSERT INTO watchers (id, sandbox_id, path, include_content, ignored, encoding, reason, created_at)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
      record.id,
      record.sandboxId,
      record.path,
      record.includeContent ? 1 : 0,
      JSON.stringify(record.ignored),
      record.encoding,
      record.reason,
      record.createdAt,
    )
  }

  movePaths(sandboxId: string, moved: (path: string) => string): void {
    for (const { id, path } of this.list(sandboxId))
      if (moved(path) !== path) this.#db.run('UPDATE watchers SET path = ? WHERE id = ?', moved(path), id)
  }

  stopped(id: string, reason: string): void {
    this.#db.run('UPDATE watchers SET reason = ? WHERE id = ?', reason, id)
  }

  get(sandboxId: string, id: string): WatcherRecord | undefined {
    const row = this.#db.get<Row>('SELECT * FROM watchers WHERE sandbox_id = ? AND id = ?', sandboxId, id)
    return row && fromRow(row)
  }

  /** Oldest first. */
  list(sandboxId: string): WatcherRecord[] {
    return this.#db
      .all<Row>('SELECT * FROM watchers WHERE sandbox_id = ? ORDER BY created_at, id', sandboxId)
      .map(fromRow)
  }

  count(sandboxId: string): number {
    return this.#db.get<{ n: number }>('SELECT count(*) AS n FROM watchers WHERE sandbox_id = ?', sandboxId)!
      .n
  }

  /** False: there was none. */
  remove(sandboxId: string, id: string): boolean {
    return this.#db.run('DELETE FROM watchers WHERE sandbox_id = ? AND id = ?', sandboxId, id) > 0
  }

  removeAll(sandboxId: string): void {
    this.#db.run('DELETE FROM watchers WHERE sandbox_id = ?', sandboxId)
  }

  /** Those that a crash left of sandboxes that are gone. */
  sweep(): void {
    this.#db.run(
      `DELETE FROM watchers WHERE sandbox_id IN (SELECT id FROM sandboxes WHERE status = 'stopped')`,
    )
  }
}

function fromRow(row: Row): WatcherRecord {
  return {
    id: row.id,
    sandboxId: row.sandbox_id,
    path: row.path,
    includeContent: row.include_content === 1,
    ignored: JSON.parse(row.ignored),
    encoding: row.encoding,
    reason: row.reason,
    createdAt: row.created_at,
  }
}
