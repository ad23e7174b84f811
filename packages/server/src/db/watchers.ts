import type { WatcherInfo } from '@islet/contract'
import type { Db } from './db.ts'
import { Table } from './table.ts'

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

export class WatcherTable extends Table<WatcherRecord> {
  constructor(db: Db) {
    super(db, 'watchers', {
      id: 'plain',
      sandboxId: 'plain',
      path: 'plain',
      includeContent: 'boolean',
      ignored: 'json',
      encoding: 'plain',
      reason: 'plain',
      createdAt: 'plain',
    })
  }

  movePaths(sandboxId: string, moved: (path: string) => string): void {
    for (const { id, path } of this.list(sandboxId))
      if (moved(path) !== path) this.db.run('UPDATE watchers SET path = ? WHERE id = ?', moved(path), id)
  }

  stopped(id: string, reason: string): void {
    this.db.run('UPDATE watchers SET reason = ? WHERE id = ?', reason, id)
  }

  get(sandboxId: string, id: string): WatcherRecord | undefined {
    return this.selectOne('WHERE sandbox_id = ? AND id = ?', sandboxId, id)
  }

  /** Oldest first. */
  list(sandboxId: string): WatcherRecord[] {
    return this.selectAll('WHERE sandbox_id = ? ORDER BY created_at, id', sandboxId)
  }

  count(sandboxId: string): number {
    return this.countWhere('WHERE sandbox_id = ?', sandboxId)
  }

  /** False: there was none. */
  remove(sandboxId: string, id: string): boolean {
    return this.db.run('DELETE FROM watchers WHERE sandbox_id = ? AND id = ?', sandboxId, id) > 0
  }

  removeAll(sandboxId: string): void {
    this.db.run('DELETE FROM watchers WHERE sandbox_id = ?', sandboxId)
  }

  /** Removes what a crash left of stopped sandboxes. */
  sweep(): void {
    this.db.run(
      `DELETE FROM watchers WHERE sandbox_id IN (SELECT id FROM sandboxes WHERE status = 'stopped')`,
    )
  }
}
