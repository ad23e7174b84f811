// Shells that wait for a root, so that a sandbox need not wait for its shell. They are anonymous: one pool serves every image,
// snapshot, checkpoint and fork. A shell leaves the pool once, for one sandbox or to be destroyed, and never comes back.
//
// How many wait follows from what was asked for lately, between a floor and a ceiling; the ceiling is lower when memory is short.
// They are made one after another and behind all other work. They end with the server: a crashed one's are removed by the next.
import { freemem } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { newId } from '@islet/contract'
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
/** After one that could not be started, or died. */
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
  #fillSoon: NodeJS.Timeout | undefined
  #shrinking: NodeJS.Timeout | undefined
  #started = false
  #isFailing = false
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

  /** One that waits, or else one that is started now. */
  claim(): ShellClaim {
    this.#claimedAt = performance.now()
    this.#demand.count()
    const ready = this.#takeAlive()
    // Later it need not wait for a quiet moment.
    this.#fillSoon ??= setTimeout(() => {
      this.#fillSoon = undefined
      this.#fill()
    }, QUIET_MS).unref()
    return new ShellClaim(this.#parts, { ready })
  }

  /** A layer of this size, empty or a copy of a saved one, if one waits. Hold it before it is used. */
  takeLayer(limitBytes: number, over?: string): string | undefined {
    return this.#options.max > 0 ? this.#layers.take(limitBytes, over) : undefined
  }

  /** No copy stays of what is deleted. */
  forgetLayers(layers: readonly string[]): Promise<void> {
    return this.#layers.forget(layers)
  }

  info(): WarmPoolInfo {
    const { min, max } = this.#options
    return { ready: this.#ready.length, target: this.#target(), min, max }
  }

  /** No more are kept waiting; those that do can be claimed. */
  leave(): void {
    this.#started = false
    this.#closing.abort()
    clearTimeout(this.#fillSoon)
    clearTimeout(this.#shrinking)
  }

  /** Ends those that wait. Claims after this are started when they are made. */
  async close(): Promise<void> {
    this.leave()
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
    this.#filling = this.#fillUp()
      .catch((error) => this.#rest(error))
      .then(() => {
        this.#filling = undefined
        this.#scheduleShrink()
        // Others may have been claimed in the last moment.
        this.#fill()
      })
  }

  async #fillUp(): Promise<void> {
    while (this.#started && this.#ready.length < this.#target()) {
      await this.#quiet()
      if (!this.#started) return
      await this.#layers.fill(this.#target())
      this.#ready.push(await this.#startOne())
      this.#isFailing = false
    }
  }

  /** However many are claimed meanwhile. */
  async #rest(error: unknown): Promise<void> {
    const { signal } = this.#closing
    if (signal.aborted) return
    if (!this.#isFailing)
      this.#parts.log.warn({ error }, 'no shell could be started ahead; it is tried again')
    this.#isFailing = true
    await sleep(RETRY_MS, undefined, { signal, ref: false }).catch(() => {})
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
      await waiting.guest.ready({ timeoutMs: CONNECT_TIMEOUT_MS, signal: this.#closing.signal })
      await this.#parts.tell('waits', waiting.shell)
      waiting.guest.events.once('disconnect', () => this.#drop(waiting))
      return waiting
    } catch (error) {
      await stopShell(this.#parts, waiting)
      throw error
    }
  }

  /** It died while it waited. */
  #drop(waiting: WaitingShell): void {
    const at = this.#ready.indexOf(waiting)
    if (at < 0) return
    this.#ready.splice(at, 1)
    this.#end(waiting)
    // Not at once: others may die of the same.
    setTimeout(() => this.#fill(), RETRY_MS).unref()
  }

  /** The longest waiting first; a few at a time. */
  #scheduleShrink(): void {
    if (!this.#started || this.#ready.length <= this.#options.min) return
    clearTimeout(this.#shrinking)
    this.#shrinking = setTimeout(() => {
      const target = this.#target()
      const surplus = this.#ready.length - target
      if (surplus > 0) for (const waiting of this.#ready.splice(0, Math.ceil(surplus / 4))) this.#end(waiting)
      this.#finish(this.#layers.trim(target))
      this.#scheduleShrink()
    }, SHRINK_MS).unref()
  }

  #end(waiting: WaitingShell): void {
    const ended = stopShell(this.#parts, waiting)
    this.#finish(
      ended.catch((error) => this.#parts.log.error({ error }, 'shell not removed; the next start does it')),
    )
  }

  /** What `close` waits for. */
  #finish(work: Promise<void>): void {
    const ending = work.finally(() => this.#ending.delete(ending))
    this.#ending.add(ending)
  }
}
