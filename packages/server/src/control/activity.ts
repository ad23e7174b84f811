// Who is using which sandbox, and since when nobody is. A use only counts; the clocks look at the counts when they ring.
import { ActivityTable } from '../db/activity.ts'
import type { Db } from '../db/db.ts'
import type { SandboxRecord } from '../db/sandboxes.ts'

/** After a restart of the server its clients have this long to come back. */
const GRACE_MS = 10_000
/** What is written down may be this part of the idle timeout old, but it is not written more often than once in LEAST_SAVE_MS. */
const SAVE_FRACTION = 20
const LEAST_SAVE_MS = 1000
/** setTimeout takes no more. */
const MAX_TIMER_MS = 2 ** 31 - 1

export interface ActivityOptions {
  db: Db
  record(id: string): SandboxRecord | undefined
  /** It has been idle for its time, or stood paused for its time. */
  onIdle(id: string): void
  onPausedTooLong(id: string): void
}

interface Usage {
  uses: number
  lastAt: number
  savedAt: number
  timer: NodeJS.Timeout | undefined
}

export class Activity {
  readonly #options: ActivityOptions
  readonly #table: ActivityTable
  readonly #usages = new Map<string, Usage>()
  #closed = false

  constructor(options: ActivityOptions) {
    this.#options = options
    this.#table = new ActivityTable(options.db)
  }

  /** Until the answer is called the sandbox is not idle. Calling it twice is fine. */
  use(id: string): () => void {
    const usage = this.#usageOf(id)
    usage.uses++
    let isOver = false
    return () => {
      if (isOver) return
      isOver = true
      usage.uses--
      this.#touch(id, usage)
    }
  }

  isUsed(id: string): boolean {
    return (this.#usages.get(id)?.uses ?? 0) > 0
  }

  /** Its clock begins anew. Call it also when its timeouts or its status have changed. */
  begin(id: string): void {
    const usage = this.#usageOf(id)
    this.#touch(id, usage)
    this.#arm(id, usage)
  }

  /** As `begin`, for one that was there before this server: its clock goes on. */
  goOn(record: SandboxRecord): void {
    const usage = this.#usageOf(record.id)
    const grace = Math.min(GRACE_MS, record.timeouts.idleMs)
    const lastAt = this.#table.get(record.id) ?? record.updatedAt
    usage.lastAt = Math.max(lastAt, Date.now() - record.timeouts.idleMs + grace)
    this.#arm(record.id, usage)
  }

  forget(id: string): void {
    clearTimeout(this.#usages.get(id)?.timer)
    this.#usages.delete(id)
  }

  /** What is known is written down; nothing rings any more. */
  close(): void {
    if (this.#closed) return
    this.#closed = true
    for (const [id, usage] of this.#usages) {
      clearTimeout(usage.timer)
      const lastAt = usage.uses > 0 ? Date.now() : usage.lastAt
      if (lastAt > usage.savedAt) this.#table.save(id, lastAt)
    }
  }

  #touch(id: string, usage: Usage): void {
    const now = Date.now()
    usage.lastAt = now
    const idleMs = this.#options.record(id)?.timeouts.idleMs ?? 0
    if (this.#closed || idleMs === 0) return
    if (now - usage.savedAt < Math.max(LEAST_SAVE_MS, idleMs / SAVE_FRACTION)) return
    usage.savedAt = now
    this.#table.save(id, now)
  }

  #arm(id: string, usage: Usage): void {
    clearTimeout(usage.timer)
    const record = this.#options.record(id)
    const due = record && !this.#closed ? dueAt(record, usage) : undefined
    if (due === undefined) return
    const wait = Math.min(Math.max(due - Date.now(), 0), MAX_TIMER_MS)
    usage.timer = setTimeout(() => this.#ring(id, usage), wait).unref()
  }

  #ring(id: string, usage: Usage): void {
    const record = this.#options.record(id)
    const due = record && dueAt(record, usage)
    if (!record || due === undefined) return
    if (due > Date.now()) this.#arm(id, usage)
    else if (record.status === 'paused') this.#options.onPausedTooLong(id)
    else this.#options.onIdle(id)
  }

  #usageOf(id: string): Usage {
    let usage = this.#usages.get(id)
    if (!usage) {
      usage = { uses: 0, lastAt: Date.now(), savedAt: 0, timer: undefined }
      this.#usages.set(id, usage)
    }
    return usage
  }
}

/** When something is to be done by itself; undefined: never. */
function dueAt({ status, timeouts, suspendedAt }: SandboxRecord, usage: Usage): number | undefined {
  const { idleMs, pausedMs } = timeouts
  if (status === 'paused') return pausedMs > 0 ? (suspendedAt ?? 0) + pausedMs : undefined
  if (status !== 'running' || idleMs === 0) return undefined
  return (usage.uses > 0 ? Date.now() : usage.lastAt) + idleMs
}
