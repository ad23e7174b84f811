// Lists are given page by page, newest first. A cursor names the last row of a page: its time and its id.
import { ID_PREFIXES, type IdKind, IsletError } from '@islet/contract'

export interface Page<Row> {
  records: Row[]
  total: number
  cursor?: string
}

/** Of up to `limit + 1` rows: one more than fits says that there is another page. */
export function toPage<Row extends { id: string; createdAt: number }>(
  rows: readonly Row[],
  total: number,
  limit: number,
): Page<Row> {
  const records = rows.slice(0, limit)
  if (rows.length <= limit) return { records, total }
  const { createdAt, id } = records.at(-1)!
  return { records, total, cursor: Buffer.from(`${createdAt}.${id}`).toString('base64url') }
}

export function readCursor(cursor: string, kind: IdKind): [createdAt: number, id: string] {
  const [, createdAt, id = ''] = /^(\d{1,15})\.(.+)$/.exec(Buffer.from(cursor, 'base64url').toString()) ?? []
  if (id.startsWith(`${ID_PREFIXES[kind]}-`)) return [Number(createdAt), id]
  throw new IsletError('bad_request', 'cursor: not one that a list answered with.')
}
