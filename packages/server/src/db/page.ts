// Lists are given page by page, by default newest first. A cursor names the order and the last row of a page: what it is sorted by, and
// its id.
import type { SQLInputValue } from 'node:sqlite'
import { ID_PREFIXES, type IdKind, IsletError } from '@islet/contract'

export interface Page<Row> {
  records: Row[]
  total: number
  cursor?: string
}

export interface PageQuery {
  limit?: number
  cursor?: string
  offset?: number
  /** A name of the table's `sorts`. Default: created. */
  sort?: string
  /** Default: that of the sort. */
  direction?: 'asc' | 'desc'
}

/** What a list can be sorted by. */
export interface Sort<Row> {
  /** An expression without NULL. */
  sql: string
  /** The same of a row. */
  of(row: Row): string | number
  direction: 'asc' | 'desc'
}

export type Sorts<Row> = Record<string, Sort<Row>>

export const BY_AGE: Sort<{ createdAt: number }> = {
  sql: 'created_at',
  of: ({ createdAt }) => createdAt,
  direction: 'desc',
}
export const BY_NAME: Sort<{ name: string | null }> = {
  sql: "coalesce(name, '')",
  of: ({ name }) => name ?? '',
  direction: 'asc',
}

const DEFAULT_LIMIT = 100

/** The conditions of a WHERE clause, and their values. */
export class Where {
  readonly #conditions: string[] = []
  readonly values: SQLInputValue[] = []

  /** A condition with an undefined value is left out. */
  and(condition: string, ...values: (SQLInputValue | undefined)[]): this {
    if (values.includes(undefined)) return this
    this.#conditions.push(condition)
    this.values.push(...(values as SQLInputValue[]))
    return this
  }

  get sql(): string {
    return this.#conditions.length > 0 ? `WHERE ${this.#conditions.join(' AND ')}` : ''
  }
}

/** `count` and `select` get what follows their FROM clause, in which `idColumn` names the id. */
export function toPage<Row extends { id: string; createdAt: number }>(
  where: Where,
  query: PageQuery,
  from: {
    kind: IdKind
    idColumn?: string
    sorts?: Sorts<NoInfer<Row>>
    count: (where: string, ...values: SQLInputValue[]) => number
    select: (rest: string, ...values: SQLInputValue[]) => Row[]
  },
): Page<Row> {
  const { limit = DEFAULT_LIMIT, offset = 0, cursor, sort: by = 'created' } = query
  const { idColumn = 'id', sorts = { created: BY_AGE } } = from
  const { sql, of, direction: usual } = sorts[by]!
  const direction = query.direction ?? usual
  const order = `${by}-${direction}`
  const total = from.count(where.sql, ...where.values)
  if (cursor !== undefined) {
    const isAfter = direction === 'asc' ? '>' : '<'
    where.and(`(${sql}, ${idColumn}) ${isAfter} (?, ?)`, ...readCursor(cursor, order, from.kind))
  }
  const rest = `${where.sql} ORDER BY ${sql} ${direction}, ${idColumn} ${direction} LIMIT ? OFFSET ?`
  // One row more than fits says that there is another page.
  const rows = from.select(rest, ...where.values, limit + 1, offset)
  const records = rows.slice(0, limit)
  if (rows.length <= limit) return { records, total }
  const last = records.at(-1)!
  return { records, total, cursor: writeCursor(order, of(last), last.id) }
}

function writeCursor(order: string, value: string | number, id: string): string {
  return Buffer.from(JSON.stringify([order, value, id])).toString('base64url')
}

function readCursor(cursor: string, order: string, kind: IdKind): [value: string | number, id: string] {
  const [its, value, id] = parseList(Buffer.from(cursor, 'base64url').toString())
  const isValue = typeof value === 'string' || (typeof value === 'number' && Number.isSafeInteger(value))
  if (isValue && typeof id === 'string' && id.startsWith(`${ID_PREFIXES[kind]}-`) && its === order)
    return [value, id]
  throw new IsletError('bad_request', 'cursor: not one that this list answered with.', {
    hint: 'Leave it out for the first page, and keep the same sort and direction for the next ones.',
  })
}

function parseList(text: string): unknown[] {
  try {
    const value: unknown = JSON.parse(text)
    return Array.isArray(value) ? value : []
  } catch {
    return []
  }
}
