// The key-value store of each sandbox. Rows are in the server's own database: a write is durable when it is answered, and does
// not depend on what the sandbox does. An expired key is invisible at once and removed later.
import { isUtf8 } from 'node:buffer'
import { setImmediate } from 'node:timers/promises'
import {
  IsletError,
  LIMITS,
  type ListStoreParsed,
  type SetStoreParsed,
  type StoreBatchResult,
  type StoreDeleted,
  type StoreKeys,
  type StoreOperationParsed,
  type StoreSet,
} from '@islet/contract'
import type { Sandboxes } from '../control/sandboxes.ts'
import type { Db } from '../db/db.ts'
import { type StoreRow, StoreTable, type StoreTotals } from '../db/store.ts'
import type { Log } from '../log.ts'

export interface StoreOptions {
  db: Db
  sandboxes: Pick<Sandboxes, 'record' | 'observe'>
  log: Pick<Log, 'error'>
  /** For each sandbox. */
  limits?: StoreTotals
  /** Throws while the disk is too full to write. */
  assertRoom?: () => void
}

/** A value as JSON text, and when it expires. */
export interface StoredValue {
  json: string
  expiresAt: string | null
}

const DEFAULT_LIMITS: StoreTotals = { keys: LIMITS.storeKeys, bytes: LIMITS.storeBytes }
const DEFAULT_LIST_KEYS = 100
const SWEEP_EVERY_MS = 10_000
/** Rows removed in one turn of the event loop: each may have a mebibyte. */
const SWEEP_ROWS = 50

export class Store {
  readonly #db: Db
  readonly #table: StoreTable
  readonly #sandboxes: StoreOptions['sandboxes']
  readonly #limits: StoreTotals
  readonly #assertRoom: () => void
  /** Totals of each sandbox, expired rows included; read from the table at the first write. */
  readonly #totals = new Map<string, StoreTotals>()
  readonly #timer: NodeJS.Timeout
  #sweeping: Promise<void>
  #closed = false

  constructor({ db, sandboxes, log, limits = DEFAULT_LIMITS, assertRoom = () => {} }: StoreOptions) {
    this.#db = db
    this.#table = new StoreTable(db)
    this.#sandboxes = sandboxes
    this.#limits = limits
    this.#assertRoom = assertRoom
    sandboxes.observe({
      // A restore may have replaced the rows that were counted.
      began: ({ record }) => void this.#totals.delete(record.id),
      suspended: (sandboxId) => void this.#totals.delete(sandboxId),
      gone: async (sandboxId, { removed }) => {
        if (removed) await this.#removeAll(sandboxId)
      },
    })
    const failed = (error: unknown) => log.error({ err: error }, 'the store was not swept')
    this.#sweeping = this.#sweepAbandoned().catch(failed)
    this.#timer = setInterval(() => {
      this.#sweeping = this.#sweeping.then(() => this.#sweepExpired()).catch(failed)
    }, SWEEP_EVERY_MS).unref()
  }

  /** Throws `key_not_found` if the key does not exist or has expired. */
  get(sandboxId: string, key: string): StoredValue {
    this.#assertReadable(sandboxId)
    const row = this.#table.get(sandboxId, key)
    if (!row || isExpired(row)) throw new IsletError('key_not_found')
    return { json: row.value, expiresAt: toIso(row.expiresAt) }
  }

  set(sandboxId: string, key: string, { value, ttl_seconds }: SetStoreParsed): StoreSet {
    this.#assertWritable(sandboxId)
    const row = { value, expiresAt: expiryOf(ttl_seconds) }
    const change = this.#changeOf(sandboxId, key, row)
    const put = () => this.#put(sandboxId, key, row, change)
    if (this.#isWithin(sandboxId, change)) put()
    else this.#allOrNothing(sandboxId, put)
    return { ok: true, expires_at: toIso(row.expiresAt) }
  }

  delete(sandboxId: string, key: string): StoreDeleted {
    this.#assertWritable(sandboxId)
    const found = this.#table.measure(sandboxId, key)
    if (found) {
      const totals = this.#totalsOf(sandboxId)
      this.#table.remove(sandboxId, key)
      add(totals, { keys: -1, bytes: -found.bytes })
    }
    return { deleted: found !== undefined && !isExpired(found), ok: true }
  }

  /** Sorted by code point. */
  list(sandboxId: string, query: ListStoreParsed): StoreKeys {
    const { prefix = '', limit = DEFAULT_LIST_KEYS, cursor } = query
    this.#assertReadable(sandboxId)
    const last = cursor === undefined ? undefined : keyOfCursor(cursor)
    const range = { from: prefix, after: last, to: after(prefix), now: Date.now(), limit: limit + 1 }
    const found = this.#table.keys(sandboxId, range)
    const keys = found.slice(0, limit)
    if (found.length <= limit) return { keys, truncated: false }
    return { keys, truncated: true, cursor: Buffer.from(keys.at(-1)!).toString('base64url') }
  }

  /** Applies all operations in order, or none. */
  batch(sandboxId: string, operations: readonly StoreOperationParsed[]): StoreBatchResult {
    this.#assertWritable(sandboxId)
    this.#allOrNothing(sandboxId, () => {
      for (const operation of operations) this.#apply(sandboxId, operation)
    })
    return { applied: operations.length, ok: true }
  }

  async close(): Promise<void> {
    this.#closed = true
    clearInterval(this.#timer)
    await this.#sweeping
  }

  /** Checks the limits after the work, and rolls back beyond them. */
  #allOrNothing(sandboxId: string, work: () => void): void {
    const before = { ...this.#totalsOf(sandboxId) }
    try {
      this.#db.transaction(() => {
        this.#totals.set(sandboxId, { ...before })
        work()
        this.#assertWithin(sandboxId)
      })
    } catch (error) {
      this.#totals.set(sandboxId, before)
      throw error
    }
  }

  #apply(sandboxId: string, operation: StoreOperationParsed): void {
    if (operation.op === 'delete') {
      this.delete(sandboxId, operation.key)
      return
    }
    const { key, value, ttl_seconds } = operation
    const row = { value, expiresAt: expiryOf(ttl_seconds) }
    this.#put(sandboxId, key, row, this.#changeOf(sandboxId, key, row))
  }

  #put(sandboxId: string, key: string, row: StoreRow, change: StoreTotals): void {
    this.#assertRoom()
    this.#table.set(sandboxId, key, row)
    add(this.#totalsOf(sandboxId), change)
  }

  /** What setting a key adds to the totals. */
  #changeOf(sandboxId: string, key: string, { value }: StoreRow): StoreTotals {
    const old = this.#table.measure(sandboxId, key)
    const bytes = Buffer.byteLength(key) + Buffer.byteLength(value)
    return old ? { keys: 0, bytes: bytes - old.bytes } : { keys: 1, bytes }
  }

  /** Removes expired keys before it refuses a write. */
  #assertWithin(sandboxId: string): void {
    const totals = this.#totalsOf(sandboxId)
    while (!this.#isWithin(sandboxId)) {
      const found = this.#table.expired({ now: Date.now(), limit: SWEEP_ROWS, sandboxId })
      if (found.length === 0) throw this.#tooMuch()
      for (const { key, bytes } of found) {
        this.#table.remove(sandboxId, key)
        add(totals, { keys: -1, bytes: -bytes })
      }
    }
  }

  #tooMuch(): IsletError {
    const { keys, bytes } = this.#limits
    return new IsletError(
      'limit_exceeded',
      `The store of a sandbox holds at most ${keys} keys and ${bytes} bytes.`,
      { hint: 'Delete keys, or give them a ttl_seconds.', details: { limitKeys: keys, limitBytes: bytes } },
    )
  }

  #isWithin(sandboxId: string, change: StoreTotals = { keys: 0, bytes: 0 }): boolean {
    const totals = this.#totalsOf(sandboxId)
    return totals.keys + change.keys <= this.#limits.keys && totals.bytes + change.bytes <= this.#limits.bytes
  }

  #totalsOf(sandboxId: string): StoreTotals {
    let totals = this.#totals.get(sandboxId)
    if (!totals) {
      totals = { ...this.#table.totals(sandboxId) }
      this.#totals.set(sandboxId, totals)
    }
    return totals
  }

  /** A failed sandbox keeps its store until it is deleted. */
  #assertReadable(sandboxId: string): void {
    const { status } = this.#sandboxes.record(sandboxId)
    if (status === 'stopped') throw gone(sandboxId, status)
  }

  #assertWritable(sandboxId: string): void {
    const { status } = this.#sandboxes.record(sandboxId)
    if (status === 'stopped' || status === 'failed') throw gone(sandboxId, status)
  }

  /** For a sandbox that can no longer be written to. */
  async #removeAll(sandboxId: string): Promise<void> {
    this.#totals.delete(sandboxId)
    while (this.#table.removeSome(sandboxId, SWEEP_ROWS) > 0) {
      await setImmediate()
      if (this.#closed) return
    }
  }

  async #sweepAbandoned(): Promise<void> {
    for (const sandboxId of this.#table.abandoned()) {
      await setImmediate()
      if (this.#closed) return
      await this.#removeAll(sandboxId)
    }
    await this.#sweepExpired()
  }

  async #sweepExpired(): Promise<void> {
    for (;;) {
      if (this.#closed) return
      const found = this.#table.expired({ now: Date.now(), limit: SWEEP_ROWS })
      if (found.length === 0) return
      this.#db.transaction(() => {
        for (const { sandboxId, key } of found) this.#table.remove(sandboxId, key)
      })
      for (const { sandboxId, bytes } of found) {
        const totals = this.#totals.get(sandboxId)
        if (totals) add(totals, { keys: -1, bytes: -bytes })
      }
      await setImmediate()
    }
  }
}

function add(totals: StoreTotals, change: StoreTotals): void {
  totals.keys += change.keys
  totals.bytes += change.bytes
}

const isExpired = ({ expiresAt }: Pick<StoreRow, 'expiresAt'>): boolean =>
  expiresAt !== null && expiresAt <= Date.now()

const expiryOf = (ttlSeconds: number | undefined): number | null =>
  ttlSeconds === undefined ? null : Math.ceil(Date.now() + ttlSeconds * 1000)

const toIso = (expiresAt: number | null): string | null =>
  expiresAt === null ? null : new Date(expiresAt).toISOString()

const gone = (sandboxId: string, status: string): IsletError =>
  new IsletError('invalid_state', `Sandbox ${sandboxId} is ${status}.`, {
    details: { status, wanted: 'running' },
  })

/** Encoded, because a key may hold NUL, which no query may. */
function keyOfCursor(cursor: string): string {
  const key = Buffer.from(cursor, 'base64url')
  if (key.length > 0 && key.toString('base64url') === cursor && isUtf8(key)) return key.toString()
  throw new IsletError('bad_request', 'cursor: not one that a list of keys answered with.')
}

/** The smallest text that sorts after all texts with this prefix; undefined if there is none. */
function after(prefix: string): string | undefined {
  const characters = [...prefix]
  for (let last = characters.pop(); last !== undefined; last = characters.pop()) {
    const code = last.codePointAt(0)! + 1
    // Surrogates are not characters.
    if (code <= 0x10ffff) return characters.join('') + String.fromCodePoint(code === 0xd800 ? 0xe000 : code)
  }
  return undefined
}
