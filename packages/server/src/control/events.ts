// The durable history of every sandbox. An event is written in the transaction that makes it true. Followers read the table, so
// they see only committed events, and a slow follower costs no memory.
import { EventEmitter } from 'node:events'
import {
  type EventPage,
  type EventType,
  IsletError,
  LIMITS,
  type ListEventsParsed,
  type SandboxEvent,
} from '@islet/contract'
import type { Db } from '../db/db.ts'
import { type EventRange, EventTable } from '../db/events.ts'

/** A sandbox may have this many events over the limit before the oldest are removed. */
const PRUNE_EVERY = 256
/** Most sandboxes whose events are counted in memory. */
const MAX_COUNTED = 10_000
/** Events that a follower holds in memory. */
const PAGE = 100

interface FollowOptions {
  signal: AbortSignal
  /** No more events will be added: the follower ends after the last one. */
  isOver(): Promise<boolean>
  /** After this time without an event, `undefined` is yielded. */
  beatMs: number
}

export class Events {
  readonly #table: EventTable
  readonly #changed = new EventEmitter<Record<string, []>>().setMaxListeners(0)
  readonly #sincePrune = new Map<string, number>()
  readonly #pending = new Set<string>()

  constructor(db: Db) {
    this.#table = new EventTable(db)
  }

  /** Within the caller's transaction, if there is one. */
  add(sandboxId: string, type: EventType, data: SandboxEvent['data'] = {}): void {
    this.#table.add(sandboxId, type, data)
    if (type === 'created') this.#sincePrune.set(sandboxId, 0)
    this.#prune(sandboxId)
    if (this.#changed.listenerCount(sandboxId) === 0 || this.#pending.has(sandboxId)) return
    // After the transaction, which ends within this turn of the event loop.
    this.#pending.add(sandboxId)
    queueMicrotask(() => {
      this.#pending.delete(sandboxId)
      this.#changed.emit(sandboxId)
    })
  }

  list(sandboxId: string, query: ListEventsParsed): EventPage {
    const { limit = 100, offset, direction = 'desc' } = query
    const range = rangeOf(query)
    const found = this.#table.list(sandboxId, { ...range, direction, offset, limit: limit + 1 })
    const total = this.#table.count(sandboxId, range)
    return { events: found.slice(0, limit), total, more: found.length > limit }
  }

  /** Events after `since`, oldest first, then new ones. Counts as a listener until it ends or is aborted. */
  follow(
    sandboxId: string,
    query: Pick<ListEventsParsed, 'since' | 'types'>,
    options: FollowOptions,
  ): AsyncGenerator<SandboxEvent | undefined> {
    if (this.#changed.listenerCount(sandboxId) >= LIMITS.eventListeners)
      throw new IsletError(
        'limit_exceeded',
        `At most ${LIMITS.eventListeners} clients can follow the events of a sandbox.`,
        { hint: 'Close some of the other streams, or list the events.' },
      )
    const bell = new Bell()
    const leave = () => {
      this.#changed.off(sandboxId, bell.ring)
      options.signal.removeEventListener('abort', leave)
      bell.ring()
    }
    this.#changed.on(sandboxId, bell.ring)
    options.signal.addEventListener('abort', leave)
    if (options.signal.aborted) leave()
    return this.#tell(sandboxId, rangeOf(query), { ...options, bell, leave })
  }

  async *#tell(
    sandboxId: string,
    range: EventRange,
    { signal, isOver, beatMs, bell, leave }: FollowOptions & { bell: Bell; leave: () => void },
  ): AsyncGenerator<SandboxEvent | undefined> {
    try {
      while (!signal.aborted) {
        bell.reset()
        // Asked before the table is read, so that the last event is not missed.
        const wasOver = await isOver()
        const page = this.#table.list(sandboxId, { ...range, direction: 'asc', limit: PAGE })
        for (const event of page) {
          if (signal.aborted) return
          yield event
          range.after = Number(event.id)
        }
        if (page.length === PAGE) continue
        if (wasOver) return
        if (!(await bell.wait(beatMs))) yield undefined
      }
    } finally {
      leave()
    }
  }

  #prune(sandboxId: string): void {
    // A sandbox without a count, for example after a restart, is pruned now.
    if (this.#sincePrune.size > MAX_COUNTED) this.#sincePrune.clear()
    const added = (this.#sincePrune.get(sandboxId) ?? PRUNE_EVERY - 1) + 1
    this.#sincePrune.set(sandboxId, added % PRUNE_EVERY)
    if (added === PRUNE_EVERY) this.#table.prune(sandboxId, LIMITS.events)
  }
}

/** Several rings between two waits count as one. */
class Bell {
  #rung = Promise.withResolvers<true>()
  readonly ring = (): void => this.#rung.resolve(true)

  reset(): void {
    this.#rung = Promise.withResolvers()
  }

  /** False: it did not ring within that time. */
  async wait(ms: number): Promise<boolean> {
    const late = Promise.withResolvers<false>()
    const timer = setTimeout(() => late.resolve(false), ms)
    try {
      return await Promise.race([this.#rung.promise, late.promise])
    } finally {
      clearTimeout(timer)
    }
  }
}

function rangeOf(query: Pick<ListEventsParsed, 'since' | 'until' | 'types'>): EventRange {
  const { since, until, types } = query
  return {
    ...(since !== undefined && (isId(since) ? { after: Number(since) } : { from: Date.parse(since) })),
    ...(until !== undefined && (isId(until) ? { before: Number(until) } : { to: Date.parse(until) })),
    types,
  }
}

const isId = (text: string): boolean => /^\d+$/.test(text)
