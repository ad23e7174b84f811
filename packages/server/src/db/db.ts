// The server's own records, in one SQLite file. Only one process can have it open; the lock ends with the process.
// Uses only what node:sqlite has in Node 22.13: no isOpen, isTransaction or timeout, and no numbered parameters.
import { chmodSync, closeSync, existsSync, fsync, mkdirSync, openSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite'
import { promisify } from 'node:util'
import { IsletError } from '@islet/contract'
import { MIGRATIONS } from './migrations.ts'

/** A checkpoint of the WAL syncs the disk, for tens of milliseconds: it waits until nothing was written for this long ... */
const QUIET_MS = 1000
/** ... unless the WAL has grown to this many pages of 4 KiB. */
const MAX_WAL_PAGES = 8192

interface Waiting {
  work: () => void
  resolve: () => void
  reject: (error: unknown) => void
}

export class Db implements Disposable {
  readonly #sqlite: DatabaseSync
  readonly #statements = new Map<string, StatementSync>()
  readonly #checkpointing: NodeJS.Timeout
  readonly #wal: number
  #writes = 0
  #checkpointed = 0
  readonly #waiting: Waiting[] = []
  readonly #committed: (() => void)[] = []
  #isPlanned = false
  #isOpen = true
  #isTransaction = false
  /** Makes room on a full disk, so that the write is retried; false: it cannot. */
  onFull: () => boolean = () => false

  constructor(sqlite: DatabaseSync, path: string) {
    this.#sqlite = sqlite
    this.#wal = openSync(`${path}-wal`, 'r')
    sqlite.exec(`PRAGMA wal_autocheckpoint = ${MAX_WAL_PAGES}`)
    let seen = 0
    this.#checkpointing = setInterval(() => {
      if (this.#writes === seen && this.#writes > this.#checkpointed) this.#checkpoint()
      seen = this.#writes
    }, QUIET_MS).unref()
  }

  #checkpoint(): void {
    try {
      this.#sqlite.exec('PRAGMA wal_checkpoint(TRUNCATE)')
      this.#checkpointed = this.#writes
    } catch {
      // The disk is full or failing. The WAL is not lost, and the next quiet moment retries.
    }
  }

  run(sql: string, ...values: SQLInputValue[]): number {
    this.#flush()
    this.#writes++
    const write = () => Number(this.#prepare(sql).run(...values).changes)
    if (this.#isTransaction) return write()
    return this.#withRoom(write)
  }

  get<Row>(sql: string, ...values: SQLInputValue[]): Row | undefined {
    this.#flush()
    return this.#prepare(sql).get(...values) as Row | undefined
  }

  all<Row>(sql: string, ...values: SQLInputValue[]): Row[] {
    this.#flush()
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
   * Rolled back when `work` throws. Not for async work. `work` may run twice: queued writes are committed together with it, and if
   * that fails, all is rolled back and each is written alone.
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
      for (const one of before) this.#writeAlone(one)
      return this.#transaction(work)
    }
  }

  /**
   * Queues a write. The queue is flushed in one transaction, before the next read or write and at the latest at the end of this turn
   * of the event loop. Resolves after the commit.
   */
  later(work: () => void): Promise<void> {
    if (!this.#isPlanned) {
      this.#isPlanned = true
      setImmediate(() => {
        this.#isPlanned = false
        this.#flush()
      })
    }
    return this.beforeNext(work)
  }

  /** As `later`, but flushed only before the next read or write: for a row that a later transaction completes. */
  beforeNext(work: () => void): Promise<void> {
    if (!this.#isOpen) return Promise.reject(new Error('the database is closed'))
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    this.#waiting.push({ work, resolve, reject })
    return promise
  }

  /** Runs after the commit of the current transaction; skipped on rollback. */
  afterCommit(work: () => void): void {
    if (this.#isTransaction) this.#committed.push(work)
    else work()
  }

  #take(): Waiting[] {
    return this.#waiting.length === 0 || this.#isTransaction ? [] : this.#waiting.splice(0)
  }

  #flush(): void {
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

  /** One write that fails does not fail the others. */
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
      // After some failures, such as a full disk, SQLite has rolled back already.
      if (!/no transaction is active/.test((error as Error).message)) throw error
    }
  }

  /** Inside a transaction: what is read now may be rolled back. */
  get isTransaction(): boolean {
    return this.#isTransaction
  }

  /** The size of the database without free pages. */
  usedBytes(): number {
    const sql =
      'SELECT (page_count - freelist_count) * page_size FROM pragma_page_count, pragma_freelist_count, pragma_page_size'
    return this.value<number>(sql)!
  }

  /** All commits until now survive a power cut: they are in the WAL, or a checkpoint has synced them. */
  async sync(): Promise<void> {
    await promisify(fsync)(this.#wal)
  }

  [Symbol.dispose](): void {
    clearInterval(this.#checkpointing)
    if (!this.#isOpen) return
    this.#flush()
    this.#isOpen = false
    this.#sqlite.close()
    closeSync(this.#wal)
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
    // Exclusive: a second server on this directory fails here. With NORMAL a commit is a write to the WAL without an fsync, which
    // survives the death of this process; a checkpoint syncs the WAL.
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

/** Called before SQLite opens it, because the WAL gets the mode of the database. */
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
