// Cells that wait, so that a sandbox need not wait for its cell. They are nobody's: one pool serves every image, snapshot,
// checkpoint and fork. A cell leaves the pool once, for one sandbox or to be destroyed, and never comes back.
//
// Each gets the root of a sandbox like those that were asked for lately (roots-ahead.ts), in their proportions, and keeps it until
// somebody takes it; forks, restores and wakes ask for none. Who finds none with the right root gets one without, or else one that is given another; for
// them a few empty layers wait.
//
// How many wait follows from what was asked for lately, between a floor (warm-floor.ts) and a ceiling, which is lower when memory is short.
// They are made one after another and behind all other work. They end with the server: a crashed one's are removed by the next.
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

/** What a cell may cost at most, and which part of the free memory all of them may. */
const CELL_BYTES = 3 * 2 ** 20
const MEMORY_SHARE = 1 / 8
const LOOK_MS = 1_000
/** Whoever got one is likely to use it now, or to claim another: its work goes first, unless that does not end. */
const QUIET_MS = 20
const PATIENCE_MS = 1_000
/** After one that could not be started, or died. */
const RETRY_MS = 5_000
/** How often the number is looked at. */
const ADJUST_MS = 5_000
/** Of how many claims the last ones say what the next ones will be for. */
const ASKED = 16
/** Empty layers that wait, of the ordinary size. */
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
  /** The latest last. */
  #asked: (Plan | undefined)[] = []
  /** The oldest first. */
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
    // Where a cell cannot be started without its root there is nothing to keep warm.
    const isLate = parts.engine.capabilities.lateRoot === true
    const max = isLate ? options.max : 0
    this.#options = { min: Math.min(options.min, max), max }
  }

  /** From now on cells are kept waiting, before anything was asked for with the root of the usual one. */
  start(usual: Plan | undefined): void {
    if (this.#closing.signal.aborted) return
    this.#started = true
    if (this.#asked.length === 0) this.#asked.push(usual, usual)
    this.#fill()
  }

  /** One that waits, with the root of this plan if there is such a one; or else one that is started now. */
  claim(plan?: Plan): CellClaim {
    this.#demand.count()
    this.#asked = [...this.#asked, plan].slice(-ASKED)
    const ready = this.#takeAlive(plan?.key)
    // Later it need not wait for a quiet moment.
    this.#fillSoon ??= setTimeout(() => {
      this.#fillSoon = undefined
      this.#fill()
    }, QUIET_MS).unref()
    const isRooted = this.#rootless === 0 && plan && ready?.ahead?.plan.key === plan.key
    return new CellClaim(this.#parts, { ready, isRooted, onRooted: this.#begun() })
  }

  /** An empty layer of this size, if one waits. Hold it before it is used. */
  takeLayer(limitBytes: number): string | undefined {
    return limitBytes === DEFAULTS.diskBytes ? this.#layers.shift() : undefined
  }

  /** These layers are about to be deleted: what stands on them goes before. */
  async forget(layers: readonly string[]): Promise<void> {
    const isGone = (plan: Plan) => standsOn(plan, layers)
    this.#asked = this.#asked.filter((plan) => plan === undefined || !isGone(plan))
    await this.#endThose(isGone)
  }

  /** The work, while none waits with a root: nothing stands on an image that no record names. */
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
    // The one that is being made may be one of them.
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

  /** No more are kept waiting; those that do can be claimed. */
  leave(): void {
    this.#started = false
    this.#closing.abort()
    clearTimeout(this.#fillSoon)
    clearTimeout(this.#adjusting)
  }

  /** Ends those that wait. Claims after this are started when they are made. */
  async close(): Promise<void> {
    this.leave()
    await this.#filling
    for (const waiting of this.#ready.splice(0)) this.#end(waiting)
    await Promise.all(this.#ending)
    await Promise.all(this.#layers.splice(0).map((layer) => deleteLayer(this.#parts, layer)))
  }

  /** Answers with what says that it has its root. */
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

  /** Of what was asked for lately, what is most short among those that wait. What was asked for once may have been all. */
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
    // What the engine can still have is for sandboxes as well: those that wait become theirs.
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
        // Others may have been claimed in the last moment.
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
      // So many were not asked for: others have the machine for as long as this one took.
      if (this.#ready.length > this.#demand.recent()) await this.#pause(performance.now() - began)
    }
  }

  /** However many are claimed meanwhile. */
  async #rest(error: unknown): Promise<void> {
    const { signal } = this.#closing
    if (signal.aborted) return
    if (!this.#isFailing) this.#parts.log.warn({ error }, 'no cell could be started ahead; it is tried again')
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

  /** Undefined: it could not have this root. */
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

  /** What cannot be made is not tried again before it is asked for; others do not wait for that. */
  async #hasRootAhead(waiting: WaitingCell, plan: Plan): Promise<boolean> {
    try {
      await giveRootAhead(this.#parts, waiting, plan)
      return true
    } catch (error) {
      this.#asked = this.#asked.map((each) => (each?.key === plan.key ? undefined : each))
      this.#parts.log.debug({ error }, 'no root could be given ahead')
      return false
    }
  }

  /** It died while it waited. */
  #drop(waiting: WaitingCell): void {
    const at = this.#ready.indexOf(waiting)
    if (at < 0) return
    this.#ready.splice(at, 1)
    this.#end(waiting)
    // Not at once: others may die of the same.
    setTimeout(() => this.#fill(), RETRY_MS).unref()
  }

  /** Ends the longest waiting first, a few at a time. Memory may become short, or be free again, while nobody asks for a cell. */
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

  /** `close` waits for it too. */
  #end(waiting: WaitingCell): Promise<void> {
    const ending = stopCell(this.#parts, waiting)
      .catch((error) => this.#parts.log.error({ error }, 'cell not removed; the next start does it'))
      .finally(() => this.#ending.delete(ending))
    this.#ending.add(ending)
    return ending
  }
}
