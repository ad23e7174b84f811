import type { ListSandboxesParsed, Sandbox, SandboxStatus, TimeoutsInfo } from '@islet/contract'
import { IsletError } from '@islet/contract'
import type { Root } from '../engine/engine.ts'
import type { Db } from './db.ts'
import { type Page, readCursor, toPage } from './page.ts'

/** A sandbox as the server keeps it: what callers see, and what the engine needs. */
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
  network: Sandbox['network']
  /** The network is still to be switched to that, in whole or in part. */
  networkDue: boolean
  user: string
  workdir: string
  storeAccess: boolean
  /** Never idle. */
  keepAwake: boolean
  timeouts: TimeoutsInfo
  /** Since when it stands still. */
  suspendedAt: number | null
  origin: Sandbox['origin']
  /** The snapshot at the end of what it descends from. */
  baseSnapshot: string | null
  /** The checkpoint whose patches it gets. */
  patchesOf: string | null
  /** Hibernated with its memory on disk: the name of the directory. */
  memory: string | null
  root: Root
  cell: string
  createdAt: number
  updatedAt: number
  stoppedAt: number | null
}

type Row = Record<keyof typeof COLUMNS, string | number | null>

// Column → field; the JSON ones are stored as text.
const COLUMNS = {
  id: 'id',
  name: 'name',
  description: 'description',
  project: 'project',
  status: 'status',
  reason: 'reason',
  runtime: 'runtime',
  image: 'image',
  engine: 'engine',
  isolation: 'isolation',
  metadata: 'metadata',
  env: 'env',
  resources: 'resources',
  network: 'network',
  network_due: 'networkDue',
  user: 'user',
  workdir: 'workdir',
  store_access: 'storeAccess',
  keep_awake: 'keepAwake',
  timeouts: 'timeouts',
  suspended_at: 'suspendedAt',
  origin: 'origin',
  base_snapshot: 'baseSnapshot',
  patches_of: 'patchesOf',
  memory: 'memory',
  root: 'root',
  cell: 'cell',
  created_at: 'createdAt',
  updated_at: 'updatedAt',
  stopped_at: 'stoppedAt',
} as const
const JSON_FIELDS = new Set<string>(['metadata', 'env', 'resources', 'network', 'timeouts', 'origin', 'root'])
const BOOLEAN_FIELDS = new Set<string>(['network_due', 'store_access', 'keep_awake'])
const NAMES = Object.keys(COLUMNS) as (keyof typeof COLUMNS)[]
const SAVE = `INSERT INTO sandboxes (${NAMES.join(', ')}) VALUES (${NAMES.map(() => '?').join(', ')})
  ON CONFLICT (id) DO UPDATE SET ${NAMES.slice(1)
    .map((name) => `${name} = excluded.${name}`)
    .join(', ')}`

/** In these words, so that sqlite uses the index of those that are there. */
const PRESENT = "status != 'stopped'"
/** Those that have a cell, or could have one again. */
const LIVE = `${PRESENT} AND status IN ('creating', 'running', 'paused', 'hibernated')`

export class SandboxTable {
  readonly #db: Db
  /** Those asked for again and again, each as it was last saved. Records are never changed in place. */
  readonly #recent = new Map<string, SandboxRecord>()

  constructor(db: Db) {
    this.#db = db
  }

  save(record: SandboxRecord): void {
    this.#recent.delete(record.id)
    const values = NAMES.map((name) => {
      const value = record[COLUMNS[name]]
      if (BOOLEAN_FIELDS.has(name)) return value ? 1 : 0
      return JSON_FIELDS.has(name) ? JSON.stringify(value) : (value as string | number | null)
    })
    this.#db.run(SAVE, ...values)
    this.#db.afterCommit(() => this.#remember(record))
  }

  get(id: string): SandboxRecord | undefined {
    const recent = this.#recent.get(id)
    if (recent) return recent
    const row = this.#db.get<Row>('SELECT * FROM sandboxes WHERE id = ?', id)
    const record = row && fromRow(row)
    if (record && record.status !== 'stopped' && !this.#db.isTransaction) this.#recent.set(id, record)
    return record
  }

  /** The one that has this name now. */
  idOf(name: string): string | undefined {
    return this.#db.get<{ id: string }>(`SELECT id FROM sandboxes WHERE name = ? AND ${PRESENT}`, name)?.id
  }

  live(): SandboxRecord[] {
    return this.#db.all<Row>(`SELECT * FROM sandboxes WHERE ${LIVE}`).map(fromRow)
  }

  /** Those whose layer and image must stay: all that were not deleted. */
  holding(): SandboxRecord[] {
    return this.#db.all<Row>(`SELECT * FROM sandboxes WHERE ${PRESENT}`).map(fromRow)
  }

  countLive(): number {
    return this.#db.get<{ n: number }>(`SELECT count(*) AS n FROM sandboxes WHERE ${LIVE}`)!.n
  }

  remove(id: string): void {
    this.#recent.delete(id)
    this.#db.run('DELETE FROM sandboxes WHERE id = ?', id)
    this.#db.afterCommit(() => this.#recent.delete(id))
  }

  #remember(record: SandboxRecord): void {
    if (record.status === 'stopped') this.#recent.delete(record.id)
    else this.#recent.set(record.id, record)
  }

  /** Stopped sandboxes beyond the newest `keep`. */
  old(keep: number): string[] {
    return this.#db
      .all<{ id: string }>(
        `SELECT id FROM sandboxes WHERE status = 'stopped' ORDER BY stopped_at DESC, id DESC LIMIT -1 OFFSET ?`,
        keep,
      )
      .map(({ id }) => id)
  }

  /** Stopped at `time` or before, oldest first. */
  stoppedBy(time: number): string[] {
    return this.#db
      .all<{ id: string }>(
        `SELECT id FROM sandboxes WHERE status = 'stopped' AND stopped_at <= ? ORDER BY stopped_at, id`,
        time,
      )
      .map(({ id }) => id)
  }

  list(query: ListSandboxesParsed): Page<SandboxRecord> {
    const { where, values } = filter(query)
    const limit = query.limit ?? 100
    const total = this.#db.get<{ n: number }>(`SELECT count(*) AS n FROM sandboxes ${where}`, ...values)!.n
    const after = query.cursor === undefined ? undefined : readCursor(query.cursor, 'sandbox')
    const page = after ? `${where} ${where ? 'AND' : 'WHERE'} (created_at, id) < (?, ?)` : where
    const records = this.#db
      .all<Row>(
        `SELECT * FROM sandboxes ${page} ORDER BY created_at DESC, id DESC LIMIT ?`,
        ...values,
        ...(after ?? []),
        limit + 1,
      )
      .map(fromRow)
    return toPage(records, total, limit)
  }
}

function filter(query: ListSandboxesParsed): { where: string; values: (string | number)[] } {
  const conditions: string[] = []
  const values: (string | number)[] = []
  const add = (condition: string, ...more: (string | number)[]) => {
    conditions.push(condition)
    values.push(...more)
  }
  if (query.status === 'stopped') add("status = 'stopped'")
  else if (query.status !== 'all') add(PRESENT)
  if (query.status !== undefined && query.status !== 'all') add('status = ?', query.status)
  if (query.name !== undefined) add('name = ?', query.name)
  if (query.project !== undefined) add('project = ?', query.project)
  for (const pair of [query.metadata ?? []].flat()) {
    const split = pair.indexOf('=')
    if (split < 1) throw new IsletError('bad_request', `metadata: '${pair}' is not key=value.`)
    add(
      'EXISTS (SELECT 1 FROM json_each(metadata) AS entry WHERE entry.key = ? AND CAST(entry.value AS TEXT) = ?)',
      pair.slice(0, split),
      pair.slice(split + 1),
    )
  }
  return { where: conditions.length > 0 ? `WHERE ${conditions.join(' AND ')}` : '', values }
}

function fromRow(row: Row): SandboxRecord {
  const record: Record<string, unknown> = {}
  for (const name of NAMES) {
    const value = row[name]
    if (BOOLEAN_FIELDS.has(name)) record[COLUMNS[name]] = value === 1
    else record[COLUMNS[name]] = JSON_FIELDS.has(name) ? JSON.parse(value as string) : value
  }
  return record as unknown as SandboxRecord
}
