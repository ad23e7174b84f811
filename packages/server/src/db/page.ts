// Lists are given page by page, newest first. A cursor names the last row of a page: its time and its id.
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

/** `count` and `select` get what follows their FROM clause, in which `alias` names the table, if it has one. */
export function toPage<Row extends { id: string; createdAt: number }>(
  where: Where,
  { limit = DEFAULT_LIMIT, cursor }: PageQuery,
  from: {
    kind: IdKind
    alias?: string
    count: (where: string, ...values: SQLInputValue[]) => number
    select: (rest: string, ...values: SQLInputValue[]) => Row[]
  },
): Page<Row> {
  const total = from.count(where.sql, ...where.values)
  const of = from.alias ? `${from.alias}.` : ''
  if (cursor !== undefined) where.and(`(${of}created_at, ${of}id) < (?, ?)`, ...readCursor(cursor, from.kind))
  const order = `ORDER BY ${of}created_at DESC, ${of}id DESC LIMIT ?`
  // One row more than fits says that there is another page.
  const rows = from.select(`${where.sql} ${order}`, ...where.values, limit + 1)
  const records = rows.slice(0, limit)
  if (rows.length <= limit) return { records, total }
  const { createdAt, id } = records.at(-1)!
  return { records, total, cursor: Buffer.from(`${createdAt}.${id}`).toString('base64url') }
}

function readCursor(cursor: string, kind: IdKind): [createdAt: number, id: string] {
  const [, createdAt, id = ''] = /^(\d{1,15})\.(.+)$/.exec(Buffer.from(cursor, 'base64url').toString()) ?? []
  if (id.startsWith(`${ID_PREFIXES[kind]}-`)) return [Number(createdAt), id]
  throw new IsletError('bad_request', 'cursor: not one that a list answered with.')
}
