// A pool of waiting cells, so that a create does not wait for one. One pool serves every image, snapshot, checkpoint and fork. A
// cell leaves the pool once, for a sandbox or to be destroyed, and never returns.
//
// A waiting cell is bound ahead to the root of a sandbox like those of the last claims, in their proportions (roots-ahead.ts).
// Forks, restores and wakes ask for no root. If no waiting cell has the requested root, a claim takes an unbound one, else one that
// is bound again; a few empty layers wait for these.
//
// The number of cells follows recent demand, between a floor (floor.ts) and a ceiling that is lower when memory is short. Cells are
// started one after another, behind all other work. They end with the server; the next server removes those of a crashed one.
import { freemem } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { DEFAULTS, newId } from '@islet/contract'
import {
  CellClaim,
  type CellParts,
  CONNECT_TIMEOUT_MS,
  deleteLayer,
  startCell,
  stopCell,
  type WaitingCell,
} from './cells.ts'
import { Demand } from './demand.ts'
import { giveRootAhead, type Plan, standsOn } from './roots-ahead.ts'

/** The most that a cell costs, and the part of the free memory that all may use. */
const CELL_BYTES = 3 * 2 ** 20
const MEMORY_SHARE = 1 / 8
const LOOK_MS = 1_000
/** After a claim, filling waits for a quiet moment of this length, but not longer than PATIENCE_MS. */
const QUIET_MS = 20
const PATIENCE_MS = 1_000
/** Delay after a cell could not be started, or died. */
const RETRY_MS = 5_000
/** How often the number of cells is adjusted. */
const ADJUST_MS = 5_000
/** How many of the last claims predict the next ones. */
const ASKED = 16
/** Number of waiting empty layers, which have the default size. */
const LAYERS = 2

export interface WarmPoolOptions {
  min: number
  max: number
}

interface WarmPoolInfo {
  ready: number
  target: number
  min: number
  max: number
}

export class WarmPool {
  readonly #parts: CellParts
  readonly #options: WarmPoolOptions
  readonly #demand = new Demand()
  /** Plans of the last claims, oldest first. */
  #asked: (Plan | undefined)[] = []
  /** Oldest first. */
  readonly #ready: WaitingCell[] = []
  readonly #layers: string[] = []
  readonly #ending = new Set<Promise<void>>()
  readonly #closing = new AbortController()
  #filling: Promise<void> | undefined
  #making: { plan: Plan | undefined; done: Promise<void> } | undefined
  #fillSoon: NodeJS.Timeout | undefined
  #adjusting: NodeJS.Timeout | undefined
  #started = false
  #isFailing = false
  #rootless = 0
  #claims = 0
  #quietSince = 0
  #looked = { at: Number.NEGATIVE_INFINITY, cells: 0 }

  constructor(parts: CellParts, options: WarmPoolOptions) {
    this.#parts = parts
    // An engine that cannot start a cell without its root has no warm pool.
    const isLate = parts.engine.capabilities.lateRoot === true
    const max = isLate ? options.max : 0
    this.#options = { min: Math.min(options.min, max), max }
  }

  /** Starts filling. Until the first claims, `usual` predicts them. */
  start(usual: Plan | undefined): void {
    if (this.#closing.signal.aborted) return
    this.#started = true
    if (this.#asked.length === 0) this.#asked.push(usual, usual)
    this.#fill()
  }

  /** A waiting cell, if possible with the root of this plan; if none waits, one is started now. */
  claim(plan?: Plan): CellClaim {
    this.#demand.count()
    this.#asked = [...this.#asked, plan].slice(-ASKED)
    const ready = this.#takeAlive(plan?.key)
    // Not at once: the sandbox that claimed it goes first.
    this.#fillSoon ??= setTimeout(() => {
      this.#fillSoon = undefined
      this.#fill()
    }, QUIET_MS).unref()
    const isRooted = this.#rootless === 0 && plan && ready?.ahead?.plan.key === plan.key
    return new CellClaim(this.#parts, { ready, isRooted, onRooted: this.#begun() })
  }

  /** A waiting empty layer of this size, if there is one. Hold it before use. */
  takeLayer(limitBytes: number): string | undefined {
    return limitBytes === DEFAULTS.diskBytes ? this.#layers.shift() : undefined
  }

  /** Ends cells that are bound to these layers, which are about to be deleted. */
  async forget(layers: readonly string[]): Promise<void> {
    const isGone = (plan: Plan) => standsOn(plan, layers)
    this.#asked = this.#asked.filter((plan) => plan === undefined || !isGone(plan))
    await this.#endThose(isGone)
  }

  /** Runs the work while no waiting cell has a root, so that no cell uses an image that no record names. */
  async withoutRoots<T>(work: () => Promise<T>): Promise<T> {
    this.#rootless++
    try {
      await this.#endThose(() => true)
      return await work()
    } finally {
      this.#rootless--
    }
  }

  async #endThose(isGone: (plan: Plan) => boolean): Promise<void> {
    const has = (plan: Plan | undefined) => plan !== undefined && isGone(plan)
    // The cell that is being started may be one of them.
    if (has(this.#making?.plan)) await this.#making!.done
    const gone = this.#ready.filter(({ ahead }) => has(ahead?.plan))
    for (const waiting of gone) this.#ready.splice(this.#ready.indexOf(waiting), 1)
    await Promise.all(gone.map((waiting) => this.#end(waiting)))
    if (gone.length > 0) this.#fill()
  }

  info(): WarmPoolInfo {
    const { min, max } = this.#options
    return { ready: this.#ready.length, target: this.#target(), min, max }
  }

  /** Stops filling; waiting cells can still be claimed. */
  leave(): void {
    this.#started = false
    this.#closing.abort()
    clearTimeout(this.#fillSoon)
    clearTimeout(this.#adjusting)
  }

  /** Ends the waiting cells. Later claims start their own. */
  async close(): Promise<void> {
    this.leave()
    await this.#filling
    for (const waiting of this.#ready.splice(0)) this.#end(waiting)
    await Promise.all(this.#ending)
    await Promise.all(this.#layers.splice(0).map((layer) => deleteLayer(this.#parts, layer)))
  }

  /** Counts a claim until the returned function is called, when its cell has a root. */
  #begun(): () => void {
    this.#claims++
    return () => {
      this.#claims--
      this.#quietSince = performance.now()
    }
  }

  #takeAlive(key: string | undefined): WaitingCell | undefined {
    for (let waiting = this.#best(key); waiting; waiting = this.#best(key)) {
      this.#ready.splice(this.#ready.indexOf(waiting), 1)
      if (waiting.guest.connected) return waiting
      this.#end(waiting)
    }
  }

  #best(key: string | undefined): WaitingCell | undefined {
    const first = (wanted: string | undefined) => this.#ready.find(({ ahead }) => ahead?.plan.key === wanted)
    return first(key) ?? first(undefined) ?? this.#ready[0]
  }

  /** The plan of the last claims that waiting cells lack most. A plan that was claimed only once is not expected again. */
  #nextPlan(): Plan | undefined {
    if (this.#rootless > 0) return undefined
    const times = (plan: Plan | undefined) => this.#asked.filter((each) => each?.key === plan?.key).length
    const expected = this.#asked.map((plan) => (times(plan) > 1 ? plan : undefined))
    const lack = (plan: Plan | undefined) => {
      const share = expected.filter((each) => each?.key === plan?.key).length / expected.length
      return share * this.#target() - this.#ready.filter(({ ahead }) => ahead?.plan.key === plan?.key).length
    }
    return expected.reduce((most, plan) => (lack(plan) > lack(most) ? plan : most), expected[0])
  }

  #target(): number {
    const { min, max } = this.#options
    // The engine's free places are for sandboxes too; a waiting cell becomes the cell of one.
    const room = this.#ready.length + (this.#parts.engine.room?.() ?? max)
    return Math.min(Math.max(min, this.#demand.recent()), max, this.#affordable(), room)
  }

  #affordable(): number {
    const now = performance.now()
    if (now > this.#looked.at + LOOK_MS)
      this.#looked = { at: now, cells: Math.floor((freemem() * MEMORY_SHARE) / CELL_BYTES) }
    return this.#looked.cells
  }

  #fill(): void {
    if (!this.#started || this.#filling || this.#ready.length >= this.#target()) return
    this.#filling = this.#fillUp()
      .catch((error) => this.#rest(error))
      .then(() => {
        this.#filling = undefined
        this.#adjustLater()
        // More may have been claimed meanwhile.
        this.#fill()
      })
  }

  async #fillUp(): Promise<void> {
    while (this.#started && this.#ready.length < this.#target()) {
      await this.#quiet()
      if (!this.#started) return
      const began = performance.now()
      if (this.#layers.length < LAYERS) this.#layers.push(await this.#newLayer())
      const plan = this.#nextPlan()
      const done = this.#startOne(plan).then((waiting) => {
        if (waiting) this.#ready.push(waiting)
      })
      this.#making = { plan, done: done.catch(() => {}) }
      await done
      this.#isFailing = false
      // Above recent demand: pause for as long as this cell took, to leave the machine to other work.
      if (this.#ready.length > this.#demand.recent()) await this.#pause(performance.now() - began)
    }
  }

  /** Logs the first of several failures and waits. */
  async #rest(error: unknown): Promise<void> {
    const { signal } = this.#closing
    if (signal.aborted) return
    if (!this.#isFailing) this.#parts.log.warn({ error }, 'no warm cell could be started; it is retried')
    this.#isFailing = true
    await this.#pause(RETRY_MS)
  }

  async #pause(ms: number): Promise<void> {
    await sleep(ms, undefined, { signal: this.#closing.signal, ref: false }).catch(() => {})
  }

  async #quiet(): Promise<void> {
    const { signal } = this.#closing
    const since = performance.now()
    while (performance.now() < since + PATIENCE_MS) {
      const left = this.#claims > 0 ? QUIET_MS : this.#quietSince + QUIET_MS - performance.now()
      if (left <= 0) return
      await sleep(left, undefined, { signal, ref: false })
    }
  }

  async #newLayer(): Promise<string> {
    const layer = newId('layer')
    await this.#parts.storage.create(layer, { limitBytes: DEFAULTS.diskBytes })
    return layer
  }

  /** Undefined: it could not be bound to the root of the plan. */
  async #startOne(plan: Plan | undefined): Promise<WaitingCell | undefined> {
    const waiting = await startCell(this.#parts, newId('cell'), { background: true })
    try {
      await waiting.guest.ready({ timeoutMs: CONNECT_TIMEOUT_MS, signal: this.#closing.signal })
      if (plan && !(await this.#hasRootAhead(waiting, plan)))
        return void (await stopCell(this.#parts, waiting))
      await this.#parts.tell('waits', waiting.cell)
      waiting.guest.events.once('disconnect', () => this.#drop(waiting))
      return waiting
    } catch (error) {
      await stopCell(this.#parts, waiting)
      throw error
    }
  }

  /** A plan that fails is not tried again before it is claimed again, so that others do not wait for it. */
  async #hasRootAhead(waiting: WaitingCell, plan: Plan): Promise<boolean> {
    try {
      await giveRootAhead(this.#parts, waiting, plan)
      return true
    } catch (error) {
      this.#asked = this.#asked.map((each) => (each?.key === plan.key ? undefined : each))
      this.#parts.log.debug({ error }, 'a waiting cell could not be bound ahead')
      return false
    }
  }

  /** The cell died while it waited. */
  #drop(waiting: WaitingCell): void {
    const at = this.#ready.indexOf(waiting)
    if (at < 0) return
    this.#ready.splice(at, 1)
    this.#end(waiting)
    // Not at once: new ones may die for the same reason.
    setTimeout(() => this.#fill(), RETRY_MS).unref()
  }

  /** Ends surplus cells, oldest first and a few at a time, or fills up: free memory changes also without claims. */
  #adjustLater(): void {
    if (!this.#started || this.#options.max === 0) return
    clearTimeout(this.#adjusting)
    this.#adjusting = setTimeout(() => {
      const surplus = this.#ready.length - this.#target()
      if (surplus > 0) for (const waiting of this.#ready.splice(0, Math.ceil(surplus / 4))) this.#end(waiting)
      else this.#fill()
      this.#adjustLater()
    }, ADJUST_MS).unref()
  }

  /** `close` waits for it. */
  #end(waiting: WaitingCell): Promise<void> {
    const ending = stopCell(this.#parts, waiting)
      .catch((error) => this.#parts.log.error({ error }, 'waiting cell not removed; the next start does it'))
      .finally(() => this.#ending.delete(ending))
    this.#ending.add(ending)
    return ending
  }
}
