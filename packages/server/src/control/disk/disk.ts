// Watches two amounts of free space: of the machine's disk, which the server's records need, and of the pool that the files of all
// sandboxes share. While either is low, nothing new is made; disk-relief.ts pauses sandboxes that fill the pool.
import { formatSize, IsletError } from '@islet/contract'
import type { Db } from '../../db/db.ts'
import type { Log } from '../../log.ts'
import type { Ballast } from '../../storage/ballast.ts'
import { freeBytes } from '../../storage/room.ts'
import type { Storage } from '../../storage/storage.ts'

/** A look costs tens of microseconds; a fast disk writes about a hundred mebibytes between two looks. */
export const LOOK_MS = 100
const MIB = 1024 ** 2
/** The pool is low when less than this is free: the smaller of a share of its size and a number of bytes. */
const LINE = { share: 1 / 8, bytes: 512 * MIB }
/** Hysteresis: it stays low until this multiple of the line has been free for this long. */
const ENOUGH = 1.5
const ENOUGH_MS = 1000
/** Below this multiple of the line, growing sandboxes are looked for. */
const NEAR = 4

interface DiskOptions {
  dataDir: string
  storage: Storage
  ballast: Ballast
  /** Bytes that stay free on the machine's disk. */
  reserveBytes: number
  /** Holds the stores of all sandboxes. */
  db: Pick<Db, 'usedBytes'>
  /** Stores refuse writes when the database is this large. */
  storeBytes: number
  log: Log
}

export class Disk {
  readonly #options: DiskOptions
  readonly #machineLine: number
  readonly #roomLine: number
  #low: string | undefined
  #isFilling = false
  #isMachineLow = false
  #isNear = false
  #enoughSince = Number.POSITIVE_INFINITY

  constructor(options: DiskOptions) {
    this.#options = options
    // The ballast uses part of the reserve; the rest must be enough.
    this.#machineLine = options.reserveBytes / 4
    this.#roomLine = Math.min(options.storage.sizeBytes() * LINE.share, LINE.bytes)
    this.look()
  }

  /** The reason, while it is low. */
  get low(): string | undefined {
    return this.#low
  }

  /** It is low because sandboxes fill the pool. */
  get isFilling(): boolean {
    return this.#low !== undefined && this.#isFilling
  }

  /** The machine's disk is low: optional data, such as output, is not written. */
  get isMachineLow(): boolean {
    return this.#isMachineLow
  }

  get isNear(): boolean {
    return this.#isNear
  }

  /** Throws `disk_low`. */
  assertRoom(): void {
    if (this.#low !== undefined) throw this.error()
  }

  /** For writes to a store. Throws `disk_low`, or `limit_exceeded` if all stores together are too large. */
  assertStoreRoom(): void {
    this.assertRoom()
    const { db, storeBytes } = this.#options
    if (db.usedBytes() < storeBytes) return
    throw new IsletError(
      'limit_exceeded',
      `The stores of all sandboxes and saved states may use ${formatSize(storeBytes)} together on this server.`,
      {
        hint: 'Delete keys, checkpoints or sandboxes, or raise ISLET_STORE_TOTAL of the server.',
        details: { limitBytes: storeBytes },
      },
    )
  }

  error(): IsletError {
    return new IsletError('disk_low', this.#low, { details: this.#free() })
  }

  info(): { freeBytes: number; roomBytes: number; low: string | null } {
    return { ...this.#free(), low: this.#low ?? null }
  }

  look(): void {
    const { freeBytes, roomBytes } = this.#free()
    this.#isMachineLow = freeBytes < this.#machineLine * (this.#isMachineLow ? ENOUGH : 1)
    this.#isFilling = roomBytes < this.#roomLine
    this.#isNear = roomBytes < this.#roomLine * NEAR
    if (freeBytes < this.#machineLine)
      this.#setLow(`The disk of the server has ${formatSize(freeBytes)} left.`)
    else if (this.#isFilling)
      this.#setLow(`The files of sandboxes have ${formatSize(roomBytes)} left on the disk of the server.`)
    else if (freeBytes > this.#machineLine * ENOUGH && roomBytes > this.#roomLine * ENOUGH) this.#isEnough()
    else this.#enoughSince = Number.POSITIVE_INFINITY
    if (freeBytes > this.#machineLine) this.#fillBallast()
  }

  #free(): { freeBytes: number; roomBytes: number } {
    const { dataDir, storage } = this.#options
    const room = storage.room()
    return { freeBytes: freeBytes(dataDir), roomBytes: room.freeBytes + room.moreBytes }
  }

  #setLow(reason: string): void {
    this.#enoughSince = Number.POSITIVE_INFINITY
    if (this.#low === undefined) this.#options.log.warn(this.#free(), 'the disk is low; nothing new is made')
    this.#low = reason
  }

  #isEnough(): void {
    if (this.#low === undefined) return
    const now = performance.now()
    this.#enoughSince = Math.min(this.#enoughSince, now)
    if (now - this.#enoughSince < ENOUGH_MS) return
    this.#options.log.info(this.#free(), 'the disk has room again')
    this.#low = undefined
  }

  #fillBallast(): void {
    const { ballast, log } = this.#options
    ballast
      .fill(this.#machineLine)
      .catch((error) => log.debug({ error }, 'the ballast file could not be filled'))
  }
}
