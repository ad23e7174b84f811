import type { OverlayInfo } from '@islet/contract'
import type { Db } from './db.ts'
import { Table } from './table.ts'

export interface OverlayRecord {
  id: string
  sandboxId: string
  spec: OverlaySpec
  state: OverlayState
  createdAt: number
}

export interface OverlaySpec extends Pick<OverlayInfo, 'source' | 'target' | 'strategy' | 'ignore'> {
  /** The target as an absolute path. */
  root: string
}

interface OverlayState extends Pick<OverlayInfo, 'copyStatus' | 'copyError' | 'stats'> {
  /** The state of the target before the first byte was copied; undefined until then. */
  before?: OverlayGround
}

export interface OverlayGround {
  /** The target, without symlinks. */
  root: string
  /** If the target existed. */
  existing?: { mode: number; owner: string }
  /** Names in it that the overlay added. */
  placed: string[]
}

export class OverlayTable extends Table<OverlayRecord> {
  constructor(db: Db) {
    super(db, 'overlays', {
      id: 'plain',
      sandboxId: 'plain',
      spec: 'json',
      state: 'json',
      createdAt: 'plain',
    })
  }

  saveState({ id, state }: OverlayRecord): void {
    this.db.run('UPDATE overlays SET state = ? WHERE id = ?', JSON.stringify(state), id)
  }

  remove(id: string): void {
    this.db.run('DELETE FROM overlays WHERE id = ?', id)
  }

  get(sandboxId: string, id: string): OverlayRecord | undefined {
    return this.selectOne('WHERE sandbox_id = ? AND id = ?', sandboxId, id)
  }

  list(sandboxId: string): OverlayRecord[] {
    return this.selectAll('WHERE sandbox_id = ? ORDER BY created_at, id', sandboxId)
  }

  count(sandboxId: string): number {
    return this.countWhere('WHERE sandbox_id = ?', sandboxId)
  }

  removeOf(sandboxId: string): void {
    this.db.run('DELETE FROM overlays WHERE sandbox_id = ?', sandboxId)
  }

  /** Removes what a crash left of stopped sandboxes. */
  sweep(): void {
    this.db.run(
      `DELETE FROM overlays WHERE sandbox_id IN (SELECT id FROM sandboxes WHERE status = 'stopped')`,
    )
  }
}
