import type { OverlayInfo } from '@islet/contract'
import type { Db } from './db.ts'

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

export interface OverlayState extends Pick<OverlayInfo, 'copyStatus' | 'copyError' | 'stats'> {
  /** What was there before the first byte was copied; undefined until then. */
  before?: OverlayGround
}

export interface OverlayGround {
  /** The target, without symlinks. */
  root: string
  /** Of a directory that was there. */
  existing?: { mode: number; owner: string }
  /** Names in it that were not there, and come from the source. */
  placed: string[]
}

interface Row {
  id: string
  sandbox_id: string
  spec: string
  state: string
  created_at: number
}

export class OverlayTable {
  readonly #db: Db

  constructor(db: Db) {
    this.#db = db
  }

  insert(record: OverlayRecord): void {
    this.#db.run(
      'INSERT INTO overlays (id, sandbox_id, spec, state, created_at) VALUES (?, ?, ?, ?, ?)',
      record.id,
      record.sandboxId,
      JSON.stringify(record.spec),
      JSON.stringify(record.state),
      record.createdAt,
    )
  }

  saveState({ id, state }: OverlayRecord): void {
    this.#db.run('UPDATE overlays SET state = ? WHERE id = ?', JSON.stringify(state), id)
  }

  remove(id: string): void {
    this.#db.run('DELETE FROM overlays WHERE id = ?', id)
  }

  get(sandboxId: string, id: string): OverlayRecord | undefined {
    const row = this.#db.get<Row>('SELECT * FROM overlays WHERE sandbox_id = ? AND id = ?', sandboxId, id)
    return row && fromRow(row)
  }

  list(sandboxId: string): OverlayRecord[] {
    return this.#db
      .all<Row>('SELECT * FROM overlays WHERE sandbox_id = ? ORDER BY created_at, id', sandboxId)
      .map(fromRow)
  }

  count(sandboxId: string): number {
    return this.#db.get<{ count: number }>(
      'SELECT count(*) AS count FROM overlays WHERE sandbox_id = ?',
      sandboxId,
    )!.count
  }

  removeOf(sandboxId: string): void {
    this.#db.run('DELETE FROM overlays WHERE sandbox_id = ?', sandboxId)
  }

  /** Those that a crash left of sandboxes that are gone. */
  sweep(): void {
    this.#db.run(
      `DELETE FROM overlays WHERE sandbox_id IN (SELECT id FROM sandboxes WHERE status = 'stopped')`,
    )
  }
}

function fromRow(row: Row): OverlayRecord {
  return {
    id: row.id,
    sandboxId: row.sandbox_id,
    spec: JSON.parse(row.spec),
    state: JSON.parse(row.state),
    createdAt: row.created_at,
  }
}
