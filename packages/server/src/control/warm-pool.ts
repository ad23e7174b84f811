// Shells that wait for a root, so that a sandbox need not wait for its shell. They are anonymous: one pool serves every image,
// snapshot, checkpoint and fork. A shell leaves the pool once, for one sandbox or to be destroyed, and never comes back.
//
// How many wait follows from what was asked for lately, between a floor and a ceiling; the ceiling is lower when memory is short.
// They are made one after another and behind all other work. They end with the server: a crashed one's are removed by the next.
import { freemem } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { newId } from '@islet/contract'
import type { Link } from '../guest/link.ts'
import type { Storage } from '../storage/storage.ts'
import { Demand } from './demand.ts'
import {
  CONNECT_TIMEOUT_MS,
  ShellClaim,
  type ShellParts,
  startShell,
  stopShell,
  type WaitingShell,
} from './shells.ts'
import { SpareLayers } from './spare-layers.ts'

/** What a shell may cost at most, and which part of the free memory all of them may. */
const SHELL_BYTES = 3 * 2 ** 20
const MEMORY_SHARE = 1 / 8
const LOOK_MS = 1_000
/** Whoever claims one is likely to use it now, or to claim another: its work goes first, unless that does not end. */
const QUIET_MS = 20
const PATIENCE_MS = 1_000
/** After one that could not be started. */
const RETRY_MS = 5_000
/** How often the number is looked at while there are more than the floor. */
const SHRINK_MS = 5_000

export interface WarmPoolOptions {
  min: number
  max: number
}

export interface WarmPoolInfo {
  ready: number
  target: number
  min: number
  max: number
}

export class WarmPool {
  readonly #parts: ShellParts
  readonly #options: WarmPoolOptions
  readonly #demand = new Demand()
  readonly #layers: SpareLayers
  /** The oldest first. */
  readonly #ready: WaitingShell[] = []
  readonly #ending = new Set<Promise<void>>()
  readonly #closing = new AbortController()
  #filling: Promise<void> | undefined
  #shrinking: NodeJS.Timeout | undefined
  #started = false
  #claimedAt = 0
  #looked = { at: Number.NEGATIVE_INFINITY, shells: 0 }

  constructor(parts: ShellParts & { storage: Storage }, options: WarmPoolOptions) {
    this.#parts = parts
    this.#layers = new SpareLayers(parts)
    // Where a shell cannot be started without its root there is nothing to keep warm.
    const isLate = parts.engine.capabilities.lateRoot === true
    const max = isLate ? options.max : 0
    this.#options = { min: Math.min(options.min, max), max }
  }

  /** From now on shells are kept waiting. */
  start(): void {
    this.#started = true
    this.#fill()
  }

  /** One that waits, or else one that is started now, as one with a link of its own always is. */
  claim({ link }: { link?: Link } = {}): ShellClaim {
    if (link) return new ShellClaim(this.#parts, { link })
    this.#claimedAt = performance.now()
    this.#demand.count()
    const ready = this.#takeAlive()
    this.#fill()
    return new ShellClaim(this.#parts, { ready })
  }

  /** A layer of this size, empty or a copy of a saved one, if one waits. Hold it before it is used. */
  takeLayer(limitBytes: number, over?: string): string | undefined {
    return this.#options.max > 0 ? this.#layers.take(limitBytes, over) : undefined
  }

  info(): WarmPoolInfo {
    const { min, max } = this.#options
    return { ready: this.#ready.length, target: this.#target(), min, max }
  }

  /** Ends those that wait. Claims after this are started when they are made. */
  async close(): Promise<void> {
    this.#started = false
    this.#closing.abort()
    clearTimeout(this.#shrinking)
    await this.#filling
    for (const waiting of this.#ready.splice(0)) this.#end(waiting)
    await Promise.all(this.#ending)
    await this.#layers.close()
  }

  #takeAlive(): WaitingShell | undefined {
    for (let waiting = this.#ready.shift(); waiting; waiting = this.#ready.shift()) {
      if (waiting.guest.connected) return waiting
      this.#end(waiting)
    }
  }

  #target(): number {
    const { min, max } = this.#options
    return Math.min(Math.max(min, this.#demand.recent()), max, this.#affordable())
  }

  #affordable(): number {
    const now = performance.now()
    if (now > this.#looked.at + LOOK_MS)
      this.#looked = { at: now, shells: Math.floor((freemem() * MEMORY_SHARE) / SHELL_BYTES) }
    return this.#looked.shells
  }

  #fill(): void {
    if (!this.#started || this.#filling || this.#ready.length >= this.#target()) return
    const filled = this.#fillUp().then(
      () => 0,
      (error) => {
        if (!this.#closing.signal.aborted)
          this.#parts.log.warn({ error }, 'no shell could be started ahead; it is tried again')
        return RETRY_MS
      },
    )
    this.#filling = filled.then((waitMs) => {
      this.#filling = undefined
      this.#scheduleShrink()
      // Others may have been claimed in the last moment.
      setTimeout(() => this.#fill(), waitMs).unref()
    })
  }

  async #fillUp(): Promise<void> {
    while (this.#started && this.#ready.length < this.#target()) {
      await this.#quiet()
      if (!this.#started) return
      await this.#layers.fill(this.#target())
      this.#ready.push(await this.#startOne())
    }
  }

  async #quiet(): Promise<void> {
    const { signal } = this.#closing
    const since = performance.now()
    while (performance.now() < since + PATIENCE_MS) {
      const left = this.#claimedAt + QUIET_MS - performance.now()
      if (left <= 0) return
      await sleep(left, undefined, { signal, ref: false })
    }
  }

  async #startOne(): Promise<WaitingShell> {
    const waiting = await startShell(this.#parts, newId('shell'), { background: true })
    try {
      await waiting.guest.ready({ timeoutMs: CONNECT_TIMEOUT_MS })
      return waiting
    } catch (error) {
      await stopShell(this.#parts, waiting)
      throw error
    }
  }

  /** The longest waiting first; a few at a time. */
  #scheduleShrink(): void {
    if (!this.#started || this.#ready.length <= this.#options.min) return
    clearTimeout(this.#shrinking)
    this.#shrinking = setTimeout(() => {
      const surplus = this.#ready.length - this.#target()
      if (surplus > 0) for (const waiting of this.#ready.splice(0, Math.ceil(surplus / 4))) this.#end(waiting)
      this.#scheduleShrink()
    }, SHRINK_MS).unref()
  }

  #end(waiting: WaitingShell): void {
    const ending = stopShell(this.#parts, waiting)
      .catch((error) => this.#parts.log.error({ error }, 'shell not removed; the next start does it'))
      .finally(() => this.#ending.delete(ending))
    this.#ending.add(ending)
  }
}
