// What programs inside send through dialed connections, so that no flood of one sandbox is felt by another:
//
// - Memory: each connection has a window. The more a sandbox has open, the smaller they are.
// - Time: bytes are handed on piece by piece, sandbox by sandbox, for a few milliseconds of each turn of the event loop.
//   What it costs to deal with a piece depends on what is in it (a body is copied, a thousand tiny chunks are parsed), so
//   time is counted and not bytes.

import { Windows } from '../streams/windows.ts'

const WINDOWS = { sharedBytes: 2 * 1024 * 1024, minBytes: 16 * 1024, maxBytes: 256 * 1024 }
/** More than the windows together allow: only a guest that does not keep to them gets here. */
const MAX_QUEUED_BYTES = 32 * 1024 * 1024

/** How long all sandboxes together may keep one turn of the event loop. */
const TURN_MS = 4

export interface Feeder {
  /** Hands one piece on. True: another is there and wanted. */
  handOn(): boolean
}

/** The dialed connections of one sandbox. */
export class Dials {
  readonly #windows = new Windows(WINDOWS)
  #queuedBytes = 0
  readonly #waiting = new Set<Feeder>()

  /** How much a connection may send ahead of its reader. */
  window(): number {
    return this.#windows.size()
  }

  opened(): void {
    this.#windows.opened()
  }

  closed(feeder: Feeder): void {
    this.#windows.closed()
    this.#waiting.delete(feeder)
  }

  /** So many bytes wait, or do not any more. False: it is too much. */
  queued(bytes: number): boolean {
    this.#queuedBytes += bytes
    return this.#queuedBytes <= MAX_QUEUED_BYTES
  }

  /** There is something to hand on: now if nobody else has to wait for that, else in a later turn. */
  ready(feeder: Feeder, { now }: { now: boolean }): void {
    if (this.#waiting.has(feeder)) return
    if (now && TURNS.tryNow(feeder) === false) return
    this.#waiting.add(feeder)
    TURNS.add(this)
  }

  /** One piece of the connection that has waited longest. True: another waits. */
  handOn(): boolean {
    const [feeder] = this.#waiting
    if (!feeder) return false
    this.#waiting.delete(feeder)
    if (feeder.handOn()) this.#waiting.add(feeder)
    return this.#waiting.size > 0
  }
}

class Turns {
  readonly #waiting = new Set<Feeder>()
  /** Those that were served at once in this turn: what comes for them now waits, and is handed on in one piece. */
  readonly #served = new Set<Feeder>()
  #spentMs = 0
  #planned = false

  /** Undefined: it has to wait. */
  tryNow(feeder: Feeder): boolean | undefined {
    if (this.#spentMs >= TURN_MS || this.#waiting.size > 0 || this.#served.has(feeder)) return undefined
    this.#served.add(feeder)
    this.#plan()
    return this.#run(feeder)
  }

  add(dials: Feeder): void {
    this.#waiting.add(dials)
    this.#plan()
  }

  #plan(): void {
    if (this.#planned) return
    this.#planned = true
    setImmediate(() => this.#turn())
  }

  #turn(): void {
    this.#planned = false
    this.#spentMs = 0
    this.#served.clear()
    while (this.#spentMs < TURN_MS) {
      const [dials] = this.#waiting
      if (!dials) return
      this.#waiting.delete(dials)
      if (this.#run(dials)) this.#waiting.add(dials)
    }
    this.#plan()
  }

  #run(feeder: Feeder): boolean {
    const began = performance.now()
    const hasMore = feeder.handOn()
    this.#spentMs += performance.now() - began
    return hasMore
  }
}

const TURNS = new Turns()
