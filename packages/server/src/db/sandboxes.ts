import type { ListSandboxesParsed, Sandbox, SandboxStatus, TimeoutsInfo } from '@islet/contract'
import { IsletError } from '@islet/contract'
import type { Root } from '../engine/engine.ts'
import type { Db } from './db.ts'
import { BY_AGE, BY_NAME, type Page, type Sorts, Where } from './page.ts'
import type { PreviewAuth } from './previews.ts'
import { Table } from './table.ts'

/** What callers see of a sandbox, and what the engine needs. */
export interface SandboxRecord {
  id: string
  name: string | null
  description: string | null
  project: string | null
  status: SandboxStatus
  reason: string | null
  runtime: string
  image: string | null
  engine: string
  isolation: string
  metadata: Sandbox['metadata']
  env: Record<string, string>
  resources: Sandbox['resources']
  /** `auth`: of the preview of its port. Those of copies ask for the same token. */
  network: Sandbox['network'] & { auth?: PreviewAuth }
  /** The network is not completely switched to `network` yet. */
  networkDue: boolean
  user: string
  workdir: string
  storeAccess: boolean
  /** A caller waits for its only command, and it is removed then. */
  oneShot: boolean
  /** Never idle. */
  keepAwake: boolean
  timeouts: TimeoutsInfo
  /** When it was paused or hibernated. */
  suspendedAt: number | null
  origin: Sandbox['origin']
  /** The latest snapshot that it descends from. */
  baseSnapshot: string | null
  /** The checkpoint whose patches are run in it. */
  patchesOf: string | null
  /** The name of the directory of its saved memory, while it is hibernated. */
  memory: string | null
  root: Root
  cell: string
  createdAt: number
  updatedAt: number
  stoppedAt: number | null
}

/** Exactly the condition of the partial indexes, so that SQLite uses them. */
const PRESENT = "status != 'stopped'"
/** Sandboxes that have a cell or can have one again. */
const LIVE = `${PRESENT} AND status IN ('creating', 'running', 'paused', 'hibernated')`

const SORTS: Sorts<SandboxRecord> = {
  created: BY_AGE,
  name: BY_NAME,
  updated: { sql: 'updated_at', of: ({ updatedAt }) => updatedAt, direction: 'desc' },
  status: { sql: 'status', of: ({ status }) => status, direction: 'asc' },
}

export class SandboxTable extends Table<SandboxRecord> {
  /** Cache of records as they were last saved. Records are never changed in place. */
  readonly #recent = new Map<string, SandboxRecord>()

  constructor(db: Db) {
    super(db, 'sandboxes', {
      id: 'plain',
      name: 'plain',
      description: 'plain',
      project: 'plain',
      status: 'plain',
      reason: 'plain',
      runtime: 'plain',
      image: 'plain',
      engine: 'plain',
      isolation: 'plain',
      metadata: 'json',
      env: 'json',
      resources: 'json',
      network: 'json',
      networkDue: 'boolean',
      user: 'plain',
      workdir: 'plain',
      storeAccess: 'boolean',
      oneShot: 'boolean',
      keepAwake: 'boolean',
      timeouts: 'json',
      suspendedAt: 'plain',
      origin: 'json',
      baseSnapshot: 'plain',
      patchesOf: 'plain',
      memory: 'plain',
      root: 'json',
      cell: 'plain',
      createdAt: 'plain',
      updatedAt: 'plain',
      stoppedAt: 'plain',
    })
  }

  override save(record: SandboxRecord): void {
    this.#recent.delete(record.id)
    super.save(record)
    this.db.afterCommit(() => this.#remember(record))
  }

  get(id: string): SandboxRecord | undefined {
    const recent = this.#recent.get(id)
    if (recent) return recent
    const record = this.selectOne('WHERE id = ?', id)
    if (record && record.status !== 'stopped' && !this.db.isTransaction) this.#recent.set(id, record)
    return record
  }

  /** The sandbox that has this name now. */
  idOf(name: string): string | undefined {
    return this.db.value(`SELECT id FROM sandboxes WHERE name = ? AND ${PRESENT}`, name)
  }

  live(): SandboxRecord[] {
    return this.selectAll(`WHERE ${LIVE}`)
  }

  /** All that were not deleted: their layers and images are needed. */
  holding(): SandboxRecord[] {
    return this.selectAll(`WHERE ${PRESENT}`)
  }

  countLive(): number {
    return this.countWhere(`WHERE ${LIVE}`)
  }

  remove(id: string): void {
    this.#recent.delete(id)
    this.db.run('DELETE FROM sandboxes WHERE id = ?', id)
    this.db.afterCommit(() => this.#recent.delete(id))
  }

  #remember(record: SandboxRecord): void {
    if (record.status === 'stopped') this.#recent.delete(record.id)
    else this.#recent.set(record.id, record)
  }

  /** Stopped sandboxes beyond the newest `keep`. */
  old(keep: number): string[] {
    return this.db.column(
      `SELECT id FROM sandboxes WHERE status = 'stopped' ORDER BY stopped_at DESC, id DESC LIMIT -1 OFFSET ?`,
      keep,
    )
  }

  /** Stopped at `time` or before, oldest first. */
  stoppedBy(time: number): string[] {
    return this.db.column(
      `SELECT id FROM sandboxes WHERE status = 'stopped' AND stopped_at <= ? ORDER BY stopped_at, id`,
      time,
    )
  }

  list(query: ListSandboxesParsed): Page<SandboxRecord> {
    const { status, name, project, metadata = [] } = query
    const where = new Where()
    if (status !== 'all') where.and(status === 'stopped' ? "status = 'stopped'" : PRESENT)
    if (status !== 'all') where.and('status = ?', status)
    where.and('name = ?', name).and('project = ?', project)
    for (const pair of [metadata].flat()) {
      const split = pair.indexOf('=')
      if (split < 1) throw new IsletError('bad_request', `metadata: '${pair}' is not key=value.`)
      where.and(
        'EXISTS (SELECT 1 FROM json_each(metadata) AS entry WHERE entry.key = ? AND CAST(entry.value AS TEXT) = ?)',
        pair.slice(0, split),
        pair.slice(split + 1),
      )
    }
    return this.selectPage('sandbox', where, query, SORTS)
  }
}
