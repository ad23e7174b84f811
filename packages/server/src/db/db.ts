// The server's own records, in one SQLite file. Only this process may have it open: the lock goes with the process, however it ends.
import { chmodSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite'
import { IsletError } from '@islet/contract'
import { MIGRATIONS } from './migrations.ts'

export class Db implements Disposable {
  readonly #sqlite: DatabaseSync
  readonly #statements = new Map<string, StatementSync>()

  constructor(sqlite: DatabaseSync) {
    this.#sqlite = sqlite
  }

  run(sql: string, ...values: SQLInputValue[]): number {
    return Number(this.#prepare(sql).run(...values).changes)
  }

  get<Row>(sql: string, ...values: SQLInputValue[]): Row | undefined {
    return this.#prepare(sql).get(...values) as Row | undefined
  }

  all<Row>(sql: string, ...values: SQLInputValue[]): Row[] {
    return this.#prepare(sql).all(...values) as Row[]
  }

  /** All of it or, when `work` throws, nothing. Not for async work. */
  transaction<T>(work: () => T): T {
    this.#sqlite.exec('BEGIN IMMEDIATE')
    try {
      const result = work()
      this.#sqlite.exec('COMMIT')
      return result
    } catch (error) {
      this.#sqlite.exec('ROLLBACK')
      throw error
    }
  }

  [Symbol.dispose](): void {
    if (this.#sqlite.isOpen) this.#sqlite.close()
  }

  #prepare(sql: string): StatementSync {
    let statement = this.#statements.get(sql)
    if (!statement) {
      statement = this.#sqlite.prepare(sql)
      this.#statements.set(sql, statement)
    }
    return statement
  }
}

export function openDb(dataDir: string): Db {
  mkdirSync(dataDir, { recursive: true, mode: 0o711 })
  const path = join(dataDir, 'islet.db')
  const sqlite = new DatabaseSync(path, { timeout: 1000 })
  try {
    // Exclusive: a second server on this directory fails here. WAL with NORMAL: a commit is a write to the log, which
    // outlives this process without an fsync; the log is synced when it is folded into the database.
    sqlite.exec(
      'PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA foreign_keys = ON',
    )
    sqlite.exec('BEGIN IMMEDIATE; COMMIT')
    chmodSync(path, 0o600)
    migrate(sqlite)
  } catch (error) {
    sqlite.close()
    if (/locked|busy/i.test((error as Error).message)) {
      throw new IsletError('conflict', `Another server uses the data directory ${dataDir}.`, {
        hint: 'Stop it, or set ISLET_DATA_DIR to another directory.',
      })
    }
    throw error
  }
  return new Db(sqlite)
}

function migrate(sqlite: DatabaseSync): void {
  const { user_version: version } = sqlite.prepare('PRAGMA user_version').get() as { user_version: number }
  if (version > MIGRATIONS.length) {
    throw new IsletError(
      'not_supported',
      `The data directory was written by a newer Islet (schema ${version}).`,
      {
        hint: 'Update Islet, or use another data directory.',
      },
    )
  }
  for (const [index, sql] of MIGRATIONS.entries()) {
    if (index < version) continue
    sqlite.exec(`BEGIN IMMEDIATE; ${sql}; PRAGMA user_version = ${index + 1}; COMMIT`)
  }
}
