// The durable history of every sandbox. An event is written in the transaction that makes it true; whoever follows reads
// it from there, so nobody hears of what was not kept, and nobody slow costs memory.
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
import { type EventQuery, EventTable } from '../db/events.ts'

/** A sandbox may have this many more than the limit before the oldest are forgotten. */
const PRUNE_EVERY = 256
/** Sandboxes whose events are counted. */
const MAX_COUNTED = 10_000
/** What a follower has in memory. */
const PAGE = 100

interface FollowOptions {
  signal: AbortSignal
  /** Nothing more will be added: what there is is told, and then it is over. */
  isOver(): Promise<boolean>
  /** After so long without an event, `undefined` is told. */
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
    // After the transaction: it is over when this turn of the event loop is.
    this.#pending.add(sandboxId)
    queueMicrotask(() => {
      this.#pending.delete(sandboxId)
      this.#changed.emit(sandboxId)
    })
  }

  list(sandboxId: string, query: ListEventsParsed): EventPage {
    const limit = query.limit ?? 100
    const direction = query.direction ?? 'desc'
    const found = this.#table.list(sandboxId, { ...rangeOf(query), direction, limit: limit + 1 })
    return { events: found.slice(0, limit), more: found.length > limit }
  }

  /** What there is after `since`, oldest first, then what happens. Counts as a listener until its end or the signal. */
  follow(
    sandboxId: string,
    query: Pick<ListEventsParsed, 'since' | 'types'>,
    options: FollowOptions,
  ): AsyncGenerator<SandboxEvent | undefined> {
    if (this.#changed.listenerCount(sandboxId) >= LIMITS.eventListeners)
      throw new IsletError(
        'limit_exceeded',
        `The events of a sandbox are followed by at most ${LIMITS.eventListeners} clients.`,
        { hint: 'End some of the others, or list the events.' },
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
    range: Partial<EventQuery>,
    { signal, isOver, beatMs, bell, leave }: FollowOptions & { bell: Bell; leave: () => void },
  ): AsyncGenerator<SandboxEvent | undefined> {
    try {
      while (!signal.aborted) {
        bell.reset()
        // Asked before the table is: what is added last is read.
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
    // Whoever is not counted, after a restart for example, is looked at now.
    if (this.#sincePrune.size > MAX_COUNTED) this.#sincePrune.clear()
    const added = (this.#sincePrune.get(sandboxId) ?? PRUNE_EVERY - 1) + 1
    this.#sincePrune.set(sandboxId, added % PRUNE_EVERY)
    if (added === PRUNE_EVERY) this.#table.prune(sandboxId, LIMITS.events)
  }
}

/** Rung once or often between two waits, it is heard once. */
class Bell {
  #rung = Promise.withResolvers<true>()
  readonly ring = (): void => this.#rung.resolve(true)

  reset(): void {
    this.#rung = Promise.withResolvers()
  }

  /** Whether it rang within that time. */
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

function rangeOf(
  query: Pick<ListEventsParsed, 'since' | 'until' | 'types'>,
): Pick<EventQuery, 'after' | 'before' | 'from' | 'to' | 'types'> {
  const { since, until, types } = query
  return {
    ...(since !== undefined && (isId(since) ? { after: Number(since) } : { from: Date.parse(since) })),
    ...(until !== undefined && (isId(until) ? { before: Number(until) } : { to: Date.parse(until) })),
    types,
  }
}

const isId = (text: string): boolean => /^\d+$/.test(text)
