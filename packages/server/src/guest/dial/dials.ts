// Bytes that programs inside send through dialed connections, shared out so that one sandbox does not slow another:
//
// - Memory: each connection has a window. The more connections a sandbox has, the smaller their windows.
// - Time: pieces are handed on sandbox by sandbox, for a few milliseconds of each turn of the event loop. The cost of a piece
//   depends on its content (a body is copied, a thousand tiny chunks are parsed), so time is counted and not bytes.

import { Windows } from '../streams/windows.ts'

const WINDOWS = { sharedBytes: 2 * 1024 * 1024, minBytes: 16 * 1024, maxBytes: 256 * 1024 }
/** More than all windows together allow: only a guest that ignores them gets here. */
const MAX_QUEUED_BYTES = 32 * 1024 * 1024

/** How long all sandboxes together may use one turn of the event loop. */
const TURN_MS = 4

export interface Feeder {
  /** Hands one piece on. True: the reader wants more, and there is more. */
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

  /** Counts bytes that wait; negative ones have been handed on. False: too many wait. */
  queued(bytes: number): boolean {
    this.#queuedBytes += bytes
    return this.#queuedBytes <= MAX_QUEUED_BYTES
  }

  /** The feeder has a piece: it is handed on now if no other feeder waits, else in a later turn. */
  ready(feeder: Feeder, { now }: { now: boolean }): void {
    if (this.#waiting.has(feeder)) return
    if (now && TURNS.tryNow(feeder) === false) return
    this.#waiting.add(feeder)
    TURNS.add(this)
  }

  /** Hands on one piece of the connection that has waited longest. True: another connection waits. */
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
  /** Feeders that were served at once in this turn: their next pieces wait, and are handed on together. */
  readonly #served = new Set<Feeder>()
  #spentMs = 0
  #planned = false

  /** Undefined: the feeder has to wait. */
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
