// A table whose rows are records: a column for each field, named in snake case.
import type { SQLInputValue } from 'node:sqlite'
import type { IdKind } from '@islet/contract'
import type { Db } from './db.ts'
import { type Page, type PageQuery, type Sorts, toPage, type Where } from './page.ts'

/** How a field is stored: as it is, as 0 or 1, or as JSON. `json?` stores null as NULL, `json` as the text `null`. */
type Kind = 'plain' | 'boolean' | 'json' | 'json?'
type Fields<Stored> = { readonly [Field in keyof Stored]-?: Kind }

export class Table<Stored extends object> {
  protected readonly db: Db
  readonly #table: string
  readonly #fields: [field: string, kind: Kind][]
  readonly #converted: [field: string, kind: Kind][]
  readonly #select: string
  readonly #insert: string
  readonly #save: string

  /** `keys`: columns of the primary key. */
  constructor(db: Db, table: string, fields: Fields<Stored>, keys: readonly string[] = ['id']) {
    this.db = db
    this.#table = table
    this.#fields = Object.entries<Kind>(fields)
    this.#converted = this.#fields.filter(([, kind]) => kind !== 'plain')
    const columns = this.#fields.map(([field]) => toColumn(field))
    const selected = this.#fields.map(([field], at) => `${columns[at]} AS ${field}`)
    this.#select = `SELECT ${selected.join(', ')} FROM ${table}`
    this.#insert = `INSERT INTO ${table} (${columns.join(', ')}) VALUES (${columns.map(() => '?').join(', ')})`
    const updates = columns.flatMap((name) => (keys.includes(name) ? [] : `${name} = excluded.${name}`))
    this.#save = `${this.#insert} ON CONFLICT (${keys.join(', ')}) DO UPDATE SET ${updates.join(', ')}`
  }

  /** A key in use is an error. */
  insert(record: Stored): void {
    this.db.run(this.#insert, ...this.#values(record))
  }

  /** Replaces the record with the same key. */
  save(record: Stored): void {
    this.db.run(this.#save, ...this.#values(record))
  }

  /** `rest` follows the FROM clause. */
  protected selectOne(rest: string, ...values: SQLInputValue[]): Stored | undefined {
    const row = this.db.get<Record<string, unknown>>(`${this.#select} ${rest}`, ...values)
    return row && this.#fromRow(row)
  }

  protected selectAll(rest: string, ...values: SQLInputValue[]): Stored[] {
    const rows = this.db.all<Record<string, unknown>>(`${this.#select} ${rest}`, ...values)
    return rows.map((row) => this.#fromRow(row))
  }

  protected countWhere(where: string, ...values: SQLInputValue[]): number {
    return this.db.value<number>(`SELECT count(*) FROM ${this.#table} ${where}`, ...values)!
  }

  protected selectPage<Row extends { id: string; createdAt: number }>(
    this: Table<Row>,
    kind: IdKind,
    where: Where,
    query: PageQuery,
    sorts?: Sorts<NoInfer<Row>>,
  ): Page<Row> {
    const count: Table<Row>['countWhere'] = (...args) => this.countWhere(...args)
    const select: Table<Row>['selectAll'] = (...args) => this.selectAll(...args)
    return toPage(where, query, { kind, count, select, sorts })
  }

  #values(record: Stored): SQLInputValue[] {
    return this.#fields.map(([field, kind]) => {
      const value = record[field as keyof Stored]
      if (kind === 'boolean') return value ? 1 : 0
      const isJson = kind === 'json' || (kind === 'json?' && value !== null)
      return isJson ? JSON.stringify(value) : (value as SQLInputValue)
    })
  }

  #fromRow(row: Record<string, unknown>): Stored {
    const record = { ...row }
    for (const [field, kind] of this.#converted) {
      const value = row[field]
      if (kind === 'boolean') record[field] = value === 1
      else if (value !== null) record[field] = JSON.parse(value as string)
    }
    return record as Stored
  }
}

function toColumn(field: string): string {
  return field.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}
