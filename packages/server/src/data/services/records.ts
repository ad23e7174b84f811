// The records of services. Every change is a move or a note, saved before waiting callers are notified.
import { EventEmitter } from 'node:events'
import { type EventType, IsletError, type SandboxEvent, type ServiceInfo } from '@islet/contract'
import type { Events } from '../../control/events.ts'
import type { Db } from '../../db/db.ts'
import { type ServiceRecord, type ServiceState, ServiceTable } from '../../db/services.ts'
import { hasEnded, move, type Verb } from './moves.ts'

export interface ServiceKey {
  sandboxId: string
  name: string
}

/** The events of moves. */
const EVENTS: Partial<Record<Verb, EventType>> = {
  run: 'service.started',
  ready: 'service.ready',
  restart: 'service.restarted',
  stop: 'service.stopped',
  fail: 'service.failed',
}

export class ServiceRecords {
  readonly #db: Db
  readonly #events: Events
  readonly #table: ServiceTable
  readonly #changes = new EventEmitter<Record<string, []>>().setMaxListeners(0)
  #isLeaving = false
  #closed = false

  constructor({ db, events }: { db: Db; events: Events }) {
    this.#db = db
    this.#events = events
    this.#table = new ServiceTable(db)
    this.#table.sweep()
  }

  find({ sandboxId, name }: ServiceKey): ServiceRecord | undefined {
    return this.#table.get(sandboxId, name)
  }

  get(key: ServiceKey): ServiceRecord {
    const record = this.find(key)
    if (record) return record
    throw new IsletError(
      'service_not_found',
      `There is no service ${key.name.slice(0, 64)} in ${key.sandboxId}.`,
    )
  }

  list(sandboxId: string): ServiceRecord[] {
    return this.#table.list(sandboxId)
  }

  insert(record: ServiceRecord): ServiceRecord {
    return this.#save(record)
  }

  /** The only way to change a status. `why` goes into the event. */
  move(key: ServiceKey, verb: Verb, patch: Partial<ServiceState> = {}, why?: string): ServiceRecord {
    const record = this.get(key)
    const state = move(record.state, verb, patch)
    const isNews = !(hasEnded(record.state) && record.state.status === state.status)
    const reason = why ?? state.reason
    const data = { name: key.name, ...(reason !== null && { reason }) }
    const type = isNews ? EVENTS[verb] : undefined
    return this.#save({ ...record, state, updatedAt: Date.now() }, type && { type, data })
  }

  /** Changes the state without changing the status. */
  note(key: ServiceKey, patch: Partial<Omit<ServiceState, 'status'>>): ServiceRecord {
    const record = this.get(key)
    return this.#save({ ...record, state: { ...record.state, ...patch } })
  }

  /** Replaces the state. `why`: a restart was asked for. */
  replace(key: ServiceKey, state: ServiceState, why?: string): ServiceRecord {
    const news = { type: 'service.restarted', data: { name: key.name, reason: why ?? '' } } as const
    const record = { ...this.get(key), state, updatedAt: Date.now() }
    return this.#save(record, why === undefined ? undefined : news)
  }

  remove(key: ServiceKey): void {
    this.#assertOpen()
    this.#table.remove(key.sandboxId, key.name)
    this.#changes.emit(nameOf(key))
  }

  /** The record once `isSo`, or after the time; throws `service_not_found` if it is deleted meanwhile. */
  async wait(
    key: ServiceKey,
    isSo: (record: ServiceRecord) => boolean,
    options: { waitMs: number; signal?: AbortSignal },
  ): Promise<ServiceRecord> {
    options.signal?.throwIfAborted()
    const { promise, resolve } = Promise.withResolvers<void>()
    const look = () => {
      const record = this.#isLeaving ? undefined : this.find(key)
      if (!record || isSo(record)) resolve()
    }
    const timer = setTimeout(resolve, options.waitMs)
    const leave = () => resolve()
    options.signal?.addEventListener('abort', leave, { once: true })
    this.#changes.on(nameOf(key), look)
    look()
    try {
      await promise
    } finally {
      clearTimeout(timer)
      options.signal?.removeEventListener('abort', leave)
      this.#changes.off(nameOf(key), look)
    }
    options.signal?.throwIfAborted()
    return this.get(key)
  }

  /** Ends all waits. */
  leave(): void {
    this.#isLeaving = true
    for (const name of this.#changes.eventNames()) this.#changes.emit(name)
  }

  /** No more writes; the next server continues from the records. */
  close(): void {
    this.#closed = true
  }

  #save(record: ServiceRecord, news?: { type: EventType; data: SandboxEvent['data'] }): ServiceRecord {
    this.#assertOpen()
    this.#db.transaction(() => {
      this.#table.save(record)
      if (news) this.#events.add(record.sandboxId, news.type, news.data)
    })
    this.#changes.emit(nameOf(record))
    return record
  }

  #assertOpen(): void {
    if (this.#closed) throw new IsletError('draining')
  }
}

function nameOf({ sandboxId, name }: ServiceKey): string {
  return `${sandboxId}/${name}`
}

export function toServiceInfo({ sandboxId, name, spec, state, ...times }: ServiceRecord): ServiceInfo {
  const { status, path, reason, processId, restartCount, healthy, healthStatus, url, pid } = state
  return {
    name,
    sandboxId,
    start: spec.start,
    ...given({ install: spec.install, originalPath: spec.path, envFile: spec.envFile }),
    path,
    environment: spec.environment ?? {},
    status,
    ...given({ port: state.port ?? state.assignedPort, url, reason, pid, processId, healthy, healthStatus }),
    autostart: spec.autostart ?? true,
    keepAwake: spec.keepAwake ?? false,
    restartPolicy: spec.restartPolicy ?? 'never',
    maxRestarts: spec.maxRestarts ?? 0,
    restartCount,
    createdAt: new Date(times.createdAt).toISOString(),
    updatedAt: new Date(times.updatedAt).toISOString(),
  }
}

/** Without undefined and null values. */
function given<T extends object>(values: T): { [Key in keyof T]?: NonNullable<T[Key]> } {
  const entries = Object.entries(values).filter(([, value]) => value !== undefined && value !== null)
  return Object.fromEntries(entries) as { [Key in keyof T]?: NonNullable<T[Key]> }
}
