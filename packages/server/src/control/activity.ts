// Counts the uses of each sandbox and runs its idle and paused timers. A use only counts; a timer looks at the counts when it fires.
//
// Idle time is measured by the monotonic clock. The database holds the wall-clock time of the last use, for the next server. The
// end of a pause is wall-clock time too, because callers were told it.
import { AWAKE_KINDS, type Awake, type AwakeReason, LIMITS } from '@islet/contract'
import { ActivityTable } from '../db/activity.ts'
import type { Db } from '../db/db.ts'
import type { SandboxRecord } from '../db/sandboxes.ts'
import { isPausedForDisk } from './lifecycle.ts'

/** After a restart of the server, its clients have this long to reconnect. */
const GRACE_MS = 10_000
/** The saved time of the last use is at most this part of the idle timeout old, and is saved at most every LEAST_SAVE_MS. */
const SAVE_FRACTION = 20
const LEAST_SAVE_MS = 1000
/** The most that setTimeout takes. */
const MAX_TIMER_MS = 2 ** 31 - 1
/** The wall clock may be changed, so the end of a pause is checked this often. */
const LOOK_MS = 60_000
const NEVER = Number.POSITIVE_INFINITY
/** Delay before the action of a timer that failed is retried. */
const RETRY_MS = 10_000
/** While uses are still being found after a restart, the idle timer waits this much longer. */
const HELD_MS = 1000
/** Kinds of uses by a client that waits for an answer or is connected. Other uses go on without a client. */
const CALLERS: ReadonlySet<AwakeReason['kind']> = new Set(['session', 'preview', 'call'])

interface ActivityOptions {
  db: Db
  record(id: string): SandboxRecord | undefined
  /** The idle or the paused timeout has passed. Call `again` when that was handled. */
  onIdle(id: string): void
  onPausedTooLong(id: string): void
  graceMs?: number
  retryMs?: number
}

interface IdleClock {
  uses: Set<{ why: AwakeReason }>
  /** How many callers do not know yet whether they use it. */
  holds: number
  /** Monotonic, as is `savedAt`. */
  lastAt: number
  savedAt: number
  /** Copied from the record when the timer is set: uses are too frequent to read the record each time. */
  saveEveryMs: number
  timer: NodeJS.Timeout | undefined
}

export class Activity {
  readonly #options: ActivityOptions
  readonly #table: ActivityTable
  readonly #clocks = new Map<string, IdleClock>()
  #closed = false

  constructor(options: ActivityOptions) {
    this.#options = options
    this.#table = new ActivityTable(options.db)
  }

  /** The sandbox is not idle until the returned function is called. Calling it twice is fine. */
  use(id: string, why: AwakeReason = { kind: 'call' }): () => void {
    const clock = this.#clockOf(id)
    const use = { why }
    clock.uses.add(use)
    this.#touch(id, clock)
    return () => {
      if (clock.uses.delete(use)) this.#touch(id, clock)
    }
  }

  /** The sandbox does not become idle until the returned function is called, but its idle time goes on. */
  hold(id: string): () => void {
    const clock = this.#clockOf(id)
    clock.holds++
    let isOver = false
    return () => {
      if (!isOver) clock.holds--
      isOver = true
    }
  }

  /** Whether a client waits for an answer or is connected. */
  isUsed(id: string): boolean {
    return [...(this.#clocks.get(id)?.uses ?? [])].some(({ why }) => CALLERS.has(why.kind))
  }

  /** Why it is awake, or when it becomes idle. */
  awake(record: SandboxRecord): Awake | null {
    if (record.status !== 'running') return null
    const clock = this.#clockOf(record.id)
    const reasons = reasonsOf(record, clock)
    const left = reasons.length === 0 ? leftMs(record, clock) : undefined
    return { reasons, sleepsAt: left === undefined ? null : new Date(Date.now() + left).toISOString() }
  }

  /** Whether its idle timeout has passed. Asked again after the timer fired: it may have been used since. */
  isIdle(record: SandboxRecord): boolean {
    const clock = this.#clocks.get(record.id)
    return clock !== undefined && clock.uses.size === 0 && (leftMs(record, clock) ?? 1) <= 0
  }

  /** Restarts its timer. Also call it when its timeouts or its status have changed. */
  begin(id: string): void {
    const clock = this.#clockOf(id)
    clock.lastAt = monotonicMs()
    this.#arm(id, clock)
    this.#touch(id, clock)
  }

  /** As `begin`, for a sandbox of an earlier server: its idle time goes on. */
  goOn(record: SandboxRecord): void {
    const clock = this.#clockOf(record.id)
    const { idleMs } = record.timeouts
    const idleFor = Math.max(Date.now() - (this.#table.get(record.id) ?? record.updatedAt), 0)
    const { graceMs = GRACE_MS } = this.#options
    clock.lastAt = monotonicMs() - Math.min(idleFor, idleMs - Math.min(graceMs, idleMs))
    this.#arm(record.id, clock)
  }

  /** The action of a timer was done, was not needed any more, or failed: then it is retried later. */
  again(id: string, { failed = false } = {}): void {
    const clock = this.#clocks.get(id)
    const { retryMs = RETRY_MS } = this.#options
    if (clock) this.#arm(id, clock, failed ? retryMs : 0)
  }

  forget(id: string): void {
    clearTimeout(this.#clocks.get(id)?.timer)
    this.#clocks.delete(id)
  }

  /** Saves the times of the last uses and stops all timers. */
  close(): void {
    if (this.#closed) return
    this.#closed = true
    const now = monotonicMs()
    for (const [id, clock] of this.#clocks) {
      clearTimeout(clock.timer)
      const lastAt = clock.uses.size > 0 ? now : clock.lastAt
      if (lastAt > clock.savedAt) this.#save(id, Date.now() - Math.round(now - lastAt))
    }
  }

  #touch(id: string, clock: IdleClock): void {
    const now = monotonicMs()
    clock.lastAt = now
    if (now - clock.savedAt < clock.saveEveryMs || this.#closed || this.#clocks.get(id) !== clock) return
    clock.savedAt = now
    this.#save(id, Date.now())
  }

  /** A use does not fail when it cannot be saved, on a full disk: then the idle time of the next server begins earlier. */
  #save(id: string, at: number): void {
    this.#options.db.later(() => this.#table.save(id, at)).catch(() => {})
  }

  #arm(id: string, clock: IdleClock, leastMs = 0): void {
    clearTimeout(clock.timer)
    const record = this.#options.record(id)
    const idleMs = record?.timeouts.idleMs ?? 0
    clock.saveEveryMs = idleMs > 0 ? Math.max(LEAST_SAVE_MS, idleMs / SAVE_FRACTION) : NEVER
    const left = record && !this.#closed ? leftMs(record, clock) : undefined
    if (left === undefined) return
    const most = record?.status === 'paused' ? LOOK_MS : MAX_TIMER_MS
    clock.timer = setTimeout(() => this.#ring(id, clock), Math.min(Math.max(left, leastMs), most)).unref()
  }

  #ring(id: string, clock: IdleClock): void {
    if (clock.uses.size > 0) this.#touch(id, clock)
    const record = this.#options.record(id)
    const left = record && leftMs(record, clock)
    if (!record || left === undefined) return
    if (left > 0) this.#arm(id, clock)
    else if (record.status === 'paused') this.#options.onPausedTooLong(id)
    else this.#options.onIdle(id)
  }

  #clockOf(id: string): IdleClock {
    let clock = this.#clocks.get(id)
    if (!clock) {
      clock = {
        uses: new Set(),
        holds: 0,
        lastAt: monotonicMs(),
        savedAt: Number.MIN_SAFE_INTEGER,
        saveEveryMs: NEVER,
        timer: undefined,
      }
      this.#clocks.set(id, clock)
    }
    return clock
  }
}

/** Time until a timeout of the sandbox passes; undefined: never. */
function leftMs(record: SandboxRecord, clock: IdleClock): number | undefined {
  const { status, timeouts, suspendedAt } = record
  const { idleMs, pausedMs } = timeouts
  if (isPausedForDisk(record)) return undefined
  if (status === 'paused') return pausedMs > 0 ? (suspendedAt ?? 0) + pausedMs - Date.now() : undefined
  if (status !== 'running' || isNeverIdle(record)) return undefined
  if (clock.uses.size > 0) return idleMs
  return Math.max(clock.lastAt + idleMs - monotonicMs(), clock.holds > 0 ? HELD_MS : 0)
}

function isNeverIdle({ keepAwake, timeouts }: SandboxRecord): boolean {
  return keepAwake || timeouts.idleMs === 0
}

/** Each once, in the order of AWAKE_KINDS. Calls are named only if there is no other reason: most belong to one. */
function reasonsOf(record: SandboxRecord, { uses }: IdleClock): AwakeReason[] {
  const distinct = new Map<string, AwakeReason>()
  if (isNeverIdle(record)) distinct.set('setting', { kind: 'setting' })
  for (const { why } of uses) distinct.set(`${why.kind} ${why.id}`, why)
  const all = [...distinct.values()].sort((a, b) => orderOf(a) - orderOf(b))
  const named = all.filter(({ kind }) => kind !== 'call')
  return (named.length > 0 ? named : all).slice(0, LIMITS.awakeReasons)
}

const orderOf = ({ kind }: AwakeReason): number => AWAKE_KINDS.indexOf(kind)

const monotonicMs = (): number => performance.now()
