// The records of services. Every change is a move or a note, saved before anybody is told of it.
import { EventEmitter } from 'node:events'
import { IsletError } from '@islet/contract'
import type { Db } from '../../db/db.ts'
import { type ServiceRecord, type ServiceState, ServiceTable } from '../../db/services.ts'
import { move, type Verb } from './moves.ts'

export interface ServiceKey {
  sandboxId: string
  name: string
}

export class ServiceRecords {
  readonly #table: ServiceTable
  readonly #changes = new EventEmitter<Record<string, []>>().setMaxListeners(0)
  #isLeaving = false
  #closed = false

  constructor(db: Db) {
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

  /** The one way a status changes. */
  move(key: ServiceKey, verb: Verb, patch: Partial<ServiceState> = {}): ServiceRecord {
    const record = this.get(key)
    return this.#save({ ...record, state: move(record.state, verb, patch), updatedAt: Date.now() })
  }

  /** Without a change of status. */
  note(key: ServiceKey, patch: Partial<Omit<ServiceState, 'status'>>): ServiceRecord {
    const record = this.get(key)
    return this.#save({ ...record, state: { ...record.state, ...patch } })
  }

  /** Instead of what is there. */
  replace(key: ServiceKey, state: ServiceState): ServiceRecord {
    return this.#save({ ...this.get(key), state, updatedAt: Date.now() })
  }

  remove(key: ServiceKey): void {
    this.#assertOpen()
    this.#table.remove(key.sandboxId, key.name)
    this.#changes.emit(nameOf(key))
  }

  /** As it is once `isSo`, or after the time; `service_not_found` when it goes meanwhile. */
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

  /** Nobody waits any more. */
  leave(): void {
    this.#isLeaving = true
    for (const name of this.#changes.eventNames()) this.#changes.emit(name)
  }

  /** Nothing is written any more; the next server goes on from what is there. */
  close(): void {
    this.#closed = true
  }

  #save(record: ServiceRecord): ServiceRecord {
    this.#assertOpen()
    this.#table.save(record)
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
