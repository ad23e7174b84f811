// The durable history of every sandbox. An event is written in the transaction that makes it true; whoever follows reads
// it from there, so nobody hears of what was not kept, and nobody slow costs memory.
import { EventEmitter } from 'node:events'
import {
  type EventPage,
  type EventType,
  LIMITS,
  type ListEventsParsed,
  type SandboxEvent,
} from '@islet/contract'
import type { Db } from '../db/db.ts'
import { type EventQuery, EventTable } from '../db/events.ts'

/** How many more than the limit a sandbox may have before the oldest are forgotten. */
const PRUNE_EVERY = 256
const PAGE = 200

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

  /** What there is after `query.since`, oldest first, then what happens, until the signal aborts. */
  async *follow(
    sandboxId: string,
    query: ListEventsParsed,
    signal: AbortSignal,
  ): AsyncGenerator<SandboxEvent> {
    const range = rangeOf(query)
    let isNews = Promise.withResolvers<void>()
    const wake = () => isNews.resolve()
    this.#changed.on(sandboxId, wake)
    signal.addEventListener('abort', wake, { once: true })
    try {
      while (!signal.aborted) {
        isNews = Promise.withResolvers<void>()
        const page = this.#table.list(sandboxId, { ...range, direction: 'asc', limit: PAGE })
        for (const event of page) {
          if (signal.aborted) return
          yield event
          range.after = Number(event.id)
        }
        if (page.length < PAGE) await isNews.promise
      }
    } finally {
      this.#changed.off(sandboxId, wake)
      signal.removeEventListener('abort', wake)
    }
  }

  #prune(sandboxId: string): void {
    const added = (this.#sincePrune.get(sandboxId) ?? 0) + 1
    this.#sincePrune.set(sandboxId, added % PRUNE_EVERY)
    if (added === PRUNE_EVERY) this.#table.prune(sandboxId, LIMITS.events)
  }
}

function rangeOf(query: ListEventsParsed): Pick<EventQuery, 'after' | 'before' | 'from' | 'to' | 'types'> {
  const { since, until, types } = query
  return {
    ...(since !== undefined && (isId(since) ? { after: Number(since) } : { from: Date.parse(since) })),
    ...(until !== undefined && (isId(until) ? { before: Number(until) } : { to: Date.parse(until) })),
    types,
  }
}

const isId = (text: string): boolean => /^\d+$/.test(text)
