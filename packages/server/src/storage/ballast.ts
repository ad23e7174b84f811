// A file that only reserves room for the server's own records. On a full disk it is shortened piece by piece, so that a server can
// always start and record deletions. Only the database can use this room.
import { statSync, truncateSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { reserve } from './pool-image.ts'
import { freeBytes, totalBytes } from './room.ts'

const MIB = 1024 ** 2
const MOST_BYTES = 64 * MIB
const SHARE = 1 / 64
/** Enough for thousands of rows. */
const PIECE_BYTES = MIB
/** A server may need this much to start. */
const START_BYTES = MIB

export class Ballast {
  readonly #path: string
  readonly #dataDir: string
  readonly #wholeBytes: number
  #isFilling = false

  /** `dataDir` must exist. */
  constructor(dataDir: string) {
    this.#dataDir = dataDir
    this.#path = join(dataDir, 'ballast')
    this.#wholeBytes = Math.floor(Math.min(MOST_BYTES, totalBytes(dataDir) * SHARE))
    if (freeBytes(dataDir) < START_BYTES) this.give()
  }

  /** Makes room. False: there is nothing left to give. */
  give(): boolean {
    const size = this.#size()
    if (size === 0) return false
    truncateSync(this.#path, Math.max(size - PIECE_BYTES, 0))
    return true
  }

  /** Grows to its full size again, if `leaveBytes` stay free. */
  async fill(leaveBytes: number): Promise<void> {
    const missing = this.#wholeBytes - this.#size()
    if (missing <= 0 || this.#isFilling || freeBytes(this.#dataDir) < leaveBytes + missing) return
    this.#isFilling = true
    try {
      await (await open(this.#path, 'a', 0o600)).close()
      await reserve(this.#path, this.#wholeBytes)
    } finally {
      this.#isFilling = false
    }
  }

  #size(): number {
    return statSync(this.#path, { throwIfNoEntry: false })?.size ?? 0
  }
}
