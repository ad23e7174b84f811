// Who is using which sandbox, and since when nobody is. A use only counts; the clocks look at the counts when they ring.
//
// Idleness is measured by a clock that nobody can set. What is written down, for the next server, is the time of day; and so
// is the end of a pause, which callers were told.
import { AWAKE_KINDS, type Awake, type AwakeReason, LIMITS } from '@islet/contract'
import { ActivityTable } from '../db/activity.ts'
import type { Db } from '../db/db.ts'
import type { SandboxRecord } from '../db/sandboxes.ts'
import { isForDisk } from './lifecycle.ts'

/** After a restart of the server its clients have this long to come back. */
const GRACE_MS = 10_000
/** What is written down may be this part of the idle timeout old, but it is not written more often than once in LEAST_SAVE_MS. */
const SAVE_FRACTION = 20
const LEAST_SAVE_MS = 1000
/** setTimeout takes no more. */
const MAX_TIMER_MS = 2 ** 31 - 1
/** The time of day may be changed; it is looked at this often. */
const LOOK_MS = 60_000
const NEVER = Number.POSITIVE_INFINITY
/** Before what failed is tried again. */
const RETRY_MS = 10_000
/** Before one whose processes are still being found again is looked at again. */
const HELD_MS = 1000
/** Kinds of uses by somebody who waits for an answer or is connected; the others go on without anybody. */
const CALLERS: ReadonlySet<AwakeReason['kind']> = new Set(['session', 'preview', 'call'])

interface ActivityOptions {
  db: Db
  record(id: string): SandboxRecord | undefined
  /** It has been idle for its time, or stood paused for its time. Say with `again` when that was dealt with. */
  onIdle(id: string): void
  onPausedTooLong(id: string): void
  graceMs?: number
  retryMs?: number
}

interface IdleClock {
  uses: Set<{ why: AwakeReason }>
  /** So many do not know yet whether it is used. */
  holds: number
  /** By `monotonicMs`. */
  lastAt: number
  savedAt: number
  /** As of when its clock was set; uses are too many to look at the record each time. */
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

  /** Until the answer is called the sandbox is not idle. Calling it twice is fine. */
  use(id: string, why: AwakeReason = { kind: 'call' }): () => void {
    const clock = this.#clockOf(id)
    const use = { why }
    clock.uses.add(use)
    this.#touch(id, clock)
    return () => {
      if (clock.uses.delete(use)) this.#touch(id, clock)
    }
  }

  /** Until the answer is called it is not idle, but its idle time goes on. */
  hold(id: string): () => void {
    const clock = this.#clockOf(id)
    clock.holds++
    let isOver = false
    return () => {
      if (!isOver) clock.holds--
      isOver = true
    }
  }

  /** By somebody who waits for an answer or is connected. */
  isUsed(id: string): boolean {
    return [...(this.#clocks.get(id)?.uses ?? [])].some(({ why }) => CALLERS.has(why.kind))
  }

  /** Why it is awake, or when it will not be. */
  awake(record: SandboxRecord): Awake | null {
    if (record.status !== 'running') return null
    const clock = this.#clockOf(record.id)
    const reasons = reasonsOf(record, clock)
    const left = reasons.length === 0 ? leftMs(record, clock) : undefined
    return { reasons, sleepsAt: left === undefined ? null : new Date(Date.now() + left).toISOString() }
  }

  /** Its time is over: what rang may have had to wait while it was used, or while its clock began anew. */
  isIdle(record: SandboxRecord): boolean {
    const clock = this.#clocks.get(record.id)
    return clock !== undefined && clock.uses.size === 0 && (leftMs(record, clock) ?? 1) <= 0
  }

  /** Its clock begins anew. Call it also when its timeouts or its status have changed. */
  begin(id: string): void {
    const clock = this.#clockOf(id)
    clock.lastAt = monotonicMs()
    this.#arm(id, clock)
    this.#touch(id, clock)
  }

  /** As `begin`, for one that was there before this server: its clock goes on. */
  goOn(record: SandboxRecord): void {
    const clock = this.#clockOf(record.id)
    const { idleMs } = record.timeouts
    const idleFor = Math.max(Date.now() - (this.#table.get(record.id) ?? record.updatedAt), 0)
    const { graceMs = GRACE_MS } = this.#options
    clock.lastAt = monotonicMs() - Math.min(idleFor, idleMs - Math.min(graceMs, idleMs))
    this.#arm(record.id, clock)
  }

  /** What a clock rang for was done, or was not to be done after all; or it failed, and is tried again later. */
  again(id: string, { failed = false } = {}): void {
    const clock = this.#clocks.get(id)
    const { retryMs = RETRY_MS } = this.#options
    if (clock) this.#arm(id, clock, failed ? retryMs : 0)
  }

  forget(id: string): void {
    clearTimeout(this.#clocks.get(id)?.timer)
    this.#clocks.delete(id)
  }

  /** What is known is written down; nothing rings any more. */
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

  /** A use must not fail because it cannot be written down, on a full disk: the next server's clock begins a little earlier. */
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

/** Until something is to be done by itself; undefined: never. */
function leftMs(record: SandboxRecord, clock: IdleClock): number | undefined {
  const { status, timeouts, suspendedAt } = record
  const { idleMs, pausedMs } = timeouts
  if (isForDisk(record)) return undefined
  if (status === 'paused') return pausedMs > 0 ? (suspendedAt ?? 0) + pausedMs - Date.now() : undefined
  if (status !== 'running' || isNeverIdle(record)) return undefined
  if (clock.uses.size > 0) return idleMs
  return Math.max(clock.lastAt + idleMs - monotonicMs(), clock.holds > 0 ? HELD_MS : 0)
}

function isNeverIdle({ keepAwake, timeouts }: SandboxRecord): boolean {
  return keepAwake || timeouts.idleMs === 0
}

/** Each once, in the order of AWAKE_KINDS. Calls are named only where nothing else is: most are part of something else. */
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
