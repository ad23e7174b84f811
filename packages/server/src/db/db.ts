// The server's own records, in one SQLite file. Only this process may have it open: the lock goes with the process, however it ends.
// Uses only what node:sqlite has in Node 22.13: no isOpen, isTransaction or timeout, and parameters without numbers.
import { chmodSync, closeSync, existsSync, fsync, mkdirSync, openSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite'
import { promisify } from 'node:util'
import { IsletError } from '@islet/contract'
import { MIGRATIONS } from './migrations.ts'

/** Folding the log into the database syncs the disk, for tens of milliseconds: it waits for a quiet moment of this length ... */
const QUIET_MS = 1000
/** ... unless the log has grown to this many pages of 4 KiB. */
const MAX_LOG_PAGES = 8192

interface Waiting {
  work: () => void
  resolve: () => void
  reject: (error: unknown) => void
}

export class Db implements Disposable {
  readonly #sqlite: DatabaseSync
  readonly #statements = new Map<string, StatementSync>()
  readonly #folding: NodeJS.Timeout
  readonly #log: number
  #writes = 0
  #folded = 0
  readonly #waiting: Waiting[] = []
  readonly #committed: (() => void)[] = []
  #isPlanned = false
  #isOpen = true
  #isTransaction = false
  /** Makes room on a full disk, for one more try; false: it cannot. */
  onFull: () => boolean = () => false

  constructor(sqlite: DatabaseSync, path: string) {
    this.#sqlite = sqlite
    this.#log = openSync(`${path}-wal`, 'r')
    sqlite.exec(`PRAGMA wal_autocheckpoint = ${MAX_LOG_PAGES}`)
    let seen = 0
    this.#folding = setInterval(() => {
      if (this.#writes === seen && this.#writes > this.#folded) this.#fold()
      seen = this.#writes
    }, QUIET_MS).unref()
  }

  #fold(): void {
    try {
      this.#sqlite.exec('PRAGMA wal_checkpoint(TRUNCATE)')
      this.#folded = this.#writes
    } catch {
      // The disk is full, or away: what is in the log is not lost, and the next quiet moment tries again.
    }
  }

  run(sql: string, ...values: SQLInputValue[]): number {
    this.#catchUp()
    this.#writes++
    const write = () => Number(this.#prepare(sql).run(...values).changes)
    if (this.#isTransaction) return write()
    return this.#withRoom(write)
  }

  get<Row>(sql: string, ...values: SQLInputValue[]): Row | undefined {
    this.#catchUp()
    return this.#prepare(sql).get(...values) as Row | undefined
  }

  all<Row>(sql: string, ...values: SQLInputValue[]): Row[] {
    this.#catchUp()
    return this.#prepare(sql).all(...values) as Row[]
  }

  /** The first column of the first row. */
  value<Value>(sql: string, ...values: SQLInputValue[]): Value | undefined {
    const row = this.get<Record<string, Value>>(sql, ...values)
    return row && Object.values(row)[0]
  }

  /** The first column of every row. */
  column<Value>(sql: string, ...values: SQLInputValue[]): Value[] {
    return this.all<Record<string, Value>>(sql, ...values).map((row) => Object.values(row)[0]!)
  }

  /**
   * All of it or, when `work` throws, nothing. Not for async work. It may be done twice, once undone: when what had to come
   * before it could not be written together with it.
   */
  transaction<T>(work: () => T): T {
    const before = this.#take()
    if (before.length === 0) return this.#transaction(work)
    try {
      const result = this.#transaction(() => {
        for (const { work } of before) work()
        return work()
      })
      for (const { resolve } of before) resolve()
      return result
    } catch {
      // Whose failure that was shows when each is written alone.
      for (const one of before) this.#writeAlone(one)
      return this.#transaction(work)
    }
  }

  /**
   * As `transaction`, together with others, before anything that is read or written after this call and at the latest when this
   * turn of the event loop ends: what is sent meanwhile does not wait for it. Resolves when it is kept.
   */
  later(work: () => void): Promise<void> {
    if (!this.#isPlanned) {
      this.#isPlanned = true
      setImmediate(() => {
        this.#isPlanned = false
        this.#catchUp()
      })
    }
    return this.beforeNext(work)
  }

  /** The same without an end: for what nobody misses until somebody looks, such as a record that another transaction completes. */
  beforeNext(work: () => void): Promise<void> {
    if (!this.#isOpen) return Promise.reject(new Error('the database is closed'))
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    this.#waiting.push({ work, resolve, reject })
    return promise
  }

  /** Not if what is being written now is undone. */
  afterCommit(work: () => void): void {
    if (this.#isTransaction) this.#committed.push(work)
    else work()
  }

  #take(): Waiting[] {
    return this.#waiting.length === 0 || this.#isTransaction ? [] : this.#waiting.splice(0)
  }

  #catchUp(): void {
    if (!this.#isOpen) return
    const all = this.#take()
    if (all.length === 0) return
    try {
      this.#transaction(() => {
        for (const { work } of all) work()
      })
      for (const { resolve } of all) resolve()
    } catch {
      for (const one of all) this.#writeAlone(one)
    }
  }

  /** What cannot be written does not take others with it. */
  #writeAlone({ work, resolve, reject }: Waiting): void {
    try {
      this.#transaction(work)
      resolve()
    } catch (error) {
      reject(error)
    }
  }

  #transaction<T>(work: () => T): T {
    return this.#withRoom(() => this.#once(work))
  }

  #withRoom<T>(write: () => T): T {
    for (;;) {
      try {
        return write()
      } catch (error) {
        if (!isFull(error) || !this.onFull()) throw explained(error)
      }
    }
  }

  #once<T>(work: () => T): T {
    this.#prepare('BEGIN IMMEDIATE').run()
    this.#isTransaction = true
    try {
      const result = work()
      this.#prepare('COMMIT').run()
      this.#isTransaction = false
      for (const done of this.#committed.splice(0)) done()
      return result
    } catch (error) {
      this.#committed.length = 0
      if (this.#isTransaction) this.#rollBack()
      throw error
    }
  }

  #rollBack(): void {
    this.#isTransaction = false
    try {
      this.#sqlite.exec('ROLLBACK')
    } catch (error) {
      // SQLite has undone it already after some failures, such as a full disk.
      if (!/no transaction is active/.test((error as Error).message)) throw error
    }
  }

  /** Whether what is read now may yet be undone. */
  get isTransaction(): boolean {
    return this.#isTransaction
  }

  /** What all records take, without pages that are free again. */
  usedBytes(): number {
    const sql =
      'SELECT (page_count - freelist_count) * page_size FROM pragma_page_count, pragma_freelist_count, pragma_page_size'
    return this.value<number>(sql)!
  }

  /** What was committed until now survives a power cut too: it is in the log, or was synced when that was folded. */
  async sync(): Promise<void> {
    await promisify(fsync)(this.#log)
  }

  [Symbol.dispose](): void {
    clearInterval(this.#folding)
    if (!this.#isOpen) return
    this.#catchUp()
    this.#isOpen = false
    this.#sqlite.close()
    closeSync(this.#log)
  }

  #prepare(sql: string): StatementSync {
    let statement = this.#statements.get(sql)
    if (!statement) {
      if (/\?\d/.test(sql)) throw new Error(`Node 22.13 cannot bind numbered parameters: ${sql}`)
      statement = this.#sqlite.prepare(sql)
      this.#statements.set(sql, statement)
    }
    return statement
  }
}

const SQLITE_FULL = 13

function isFull(error: unknown): boolean {
  return (error as { errcode?: number } | undefined)?.errcode === SQLITE_FULL
}

function explained(error: unknown): unknown {
  return isFull(error) ? new IsletError('server_disk_full', undefined, { cause: error }) : error
}

export function openDb(dataDir: string): Db {
  mkdirSync(dataDir, { recursive: true, mode: 0o711 })
  const path = join(dataDir, 'islet.db')
  closeToOthers(path)
  const sqlite = new DatabaseSync(path)
  try {
    sqlite.exec('PRAGMA busy_timeout = 1000')
    // Exclusive: a second server on this directory fails here. WAL with NORMAL: a commit is a write to the log, which
    // outlives this process without an fsync; the log is synced when it is folded into the database.
    sqlite.exec(
      'PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA foreign_keys = ON',
    )
    sqlite.exec('BEGIN IMMEDIATE; COMMIT')
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
  return new Db(sqlite, path)
}

/** Before SQLite opens it: the log gets the mode that the database has then. */
function closeToOthers(path: string): void {
  closeSync(openSync(path, 'a', 0o600))
  for (const file of [path, `${path}-wal`]) if (existsSync(file)) chmodSync(file, 0o600)
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
