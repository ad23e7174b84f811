// Whether the server's disk is low: the machine's, beside whose last bytes lie the server's records, or the room that the files of
// sandboxes share. While it is, nothing new is made; disk-relief.ts stops those that fill it.
import { formatSize, IsletError } from '@islet/contract'
import type { Db } from '../../db/db.ts'
import type { Log } from '../../log.ts'
import type { Ballast } from '../../storage/ballast.ts'
import { freeBytes } from '../../storage/room.ts'
import type { Storage } from '../../storage/storage.ts'

/** Looking costs tens of microseconds, and a fast disk fills a hundred mebibytes meanwhile. */
export const LOOK_MS = 100
const MIB = 1024 ** 2
/** Of what sandboxes can have together, so much is left when they are stopped from taking more. */
const LINE = { share: 1 / 8, bytes: 512 * MIB }
/** It is low until there is this much more than the line, for so long: else it would be low again at once. */
const ENOUGH = 1.5
const ENOUGH_MS = 1000
/** From here on it is looked at who takes the room. */
const NEAR = 4

interface DiskOptions {
  dataDir: string
  storage: Storage
  ballast: Ballast
  /** What is to stay free on the machine's disk. */
  reserveBytes: number
  /** The server's records, in which the stores of all sandboxes are. */
  db: Pick<Db, 'usedBytes'>
  /** From this size on stores take nothing more. */
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
    // The ballast is taken out of the rest, and must leave enough.
    this.#machineLine = options.reserveBytes / 4
    this.#roomLine = Math.min(options.storage.sizeBytes() * LINE.share, LINE.bytes)
    this.look()
  }

  /** A sentence while it is low. */
  get low(): string | undefined {
    return this.#low
  }

  /** It is low, and sandboxes that write more would fill it. */
  get isFilling(): boolean {
    return this.#low !== undefined && this.#isFilling
  }

  /** The machine has little left, whoever took it: what need not be written is not. */
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

  /** For something in the store of a sandbox. Throws `disk_low`, or `limit_exceeded` when all stores together have too much. */
  assertStoreRoom(): void {
    this.assertRoom()
    const { db, storeBytes } = this.#options
    if (db.usedBytes() < storeBytes) return
    throw new IsletError(
      'limit_exceeded',
      `The stores of all sandboxes, now and as saved, have ${formatSize(storeBytes)} together on this server.`,
      {
        hint: 'Delete keys, checkpoints or sandboxes; ISLET_STORE_TOTAL of the server sets how much.',
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
    ballast.fill(this.#machineLine).catch((error) => log.debug({ error }, 'no ballast'))
  }
}
