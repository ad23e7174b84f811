// All sandboxes of this server: their records, machines and observers, and the one way to change a status. The other files of
// this folder use it.
import { setTimeout } from 'node:timers/promises'
import { IsletError, isId, type SandboxEvent } from '@islet/contract'
import type { Db } from '../db/db.ts'
import { LayersHeld } from '../db/layers-held.ts'
import { type SandboxRecord, SandboxTable } from '../db/sandboxes.ts'
import type { Cell, Engine } from '../engine/engine.ts'
import { Locks } from '../lib/locks.ts'
import type { Log } from '../log.ts'
import type { Storage } from '../storage/storage.ts'
import { Capacity } from './capacity.ts'
import type { Disk } from './disk/disk.ts'
import { Events } from './events.ts'
import { assertRunning, isSuspended, MOVES, move, type Verb } from './lifecycle.ts'
import { type Machine, startMachine } from './machine.ts'
import { deleteLayer, stopCell } from './warm/cells.ts'
import { WarmPool, type WarmPoolOptions } from './warm/pool.ts'

/** How often the first process of a sandbox is checked after its connection broke. */
const AWAY_POLL_MS = 100

interface FleetOptions {
  db: Db
  engine: Engine
  storage: Storage
  log: Log
  disk: Disk
  warm: WarmPoolOptions
  /** The operator's limits for a single sandbox. */
  ceilings?: Partial<SandboxRecord['resources']>
}

export interface RunningSandbox {
  record: SandboxRecord
  machine: Machine
}

/** How a sandbox came to run: just made; found running by a new server; started again from its files; resumed or woken. */
export type Beginning = 'created' | 'adopted' | 'restarted' | 'resumed'

/** Told when a sandbox becomes usable, is suspended and is gone. */
export interface SandboxObserver {
  /** Called in the order of `observe`. A create answers after all observers are done. */
  began(sandbox: RunningSandbox, how: Beginning): void | Promise<void>
  /**
   * No requests may be sent to the sandbox until `began`. `kept`: its processes continue then (`resumed`, or `adopted` by another
   * server). Otherwise they end now, and `began` will say `restarted`.
   */
  suspended?(sandboxId: string, options: { kept: boolean }): void | Promise<void>
  /** Ends its connections to this server, which cannot be saved with its memory. The returned function allows new ones. */
  disconnect?(sandboxId: string): Promise<() => void>
  /** `removed`: deleted for good. Otherwise it failed, and its records can still be read. */
  gone(sandboxId: string, options: { removed: boolean }): Promise<void>
  /** A cell waits for a sandbox: what it will need can be prepared. */
  waits?(cell: Cell): Promise<void>
  /** A cell is about to end, with or without a sandbox. */
  ends?(cell: Cell): Promise<void>
}

export interface MoveOptions {
  reason?: string
  /** Applied to the record as it is at that time. */
  change?: Partial<SandboxRecord> | ((current: SandboxRecord) => Partial<SandboxRecord>)
  data?: SandboxEvent['data']
  /** The current record, if no one else can have changed it. */
  from?: SandboxRecord
  /** Runs in the transaction of the move. */
  also?: () => void
}

export class Fleet {
  readonly db: Db
  readonly engine: Engine
  readonly storage: Storage
  readonly log: Log
  readonly disk: Disk
  readonly table: SandboxTable
  readonly events: Events
  readonly capacity: Capacity
  readonly layers: LayersHeld
  readonly warm: WarmPool
  /** Lifecycle changes of a sandbox run one at a time. */
  readonly turns = new Locks()
  readonly machines = new Map<string, Promise<Machine>>()
  /** Sandboxes that are being suspended, woken or restored: a use waits for its turn. */
  readonly unsteady = new Set<string>()
  closed = false
  #isLeaving = false
  readonly #settling = new Map<string, Promise<void>>()
  readonly #moving = new Map<string, PromiseWithResolvers<void>>()
  readonly #observers: SandboxObserver[] = []
  readonly #failing = new Map<string, Promise<void>>()

  constructor({ db, engine, storage, log, disk, warm, ceilings }: FleetOptions) {
    this.db = db
    this.engine = engine
    this.storage = storage
    this.log = log
    this.disk = disk
    this.capacity = new Capacity(storage, ceilings)
    this.table = new SandboxTable(db)
    this.events = new Events(db)
    this.layers = new LayersHeld(db)
    this.warm = new WarmPool(this, warm)
  }

  observe(observer: SandboxObserver): void {
    this.#observers.push(observer)
  }

  async tell(what: 'waits' | 'ends', cell: Cell): Promise<void> {
    await Promise.all(this.#observers.map((observer) => observer[what]?.(cell)))
  }

  record(id: string): SandboxRecord {
    const record = isId('sandbox', id) ? this.table.get(id) : undefined
    if (!record) throw new IsletError('sandbox_not_found', `There is no sandbox ${id.slice(0, 64)}.`)
    return record
  }

  /** `id`: the sandbox that may have the name already. */
  assertNameFree(name: string | null | undefined, id?: string): void {
    if (typeof name !== 'string') return
    const other = this.table.idOf(name)
    if (other === undefined || other === id) return
    throw new IsletError('name_taken', `Sandbox ${other} has the name ${name}.`, { details: { id: other } })
  }

  async running(id: string): Promise<RunningSandbox> {
    const record = this.record(id)
    assertRunning(record)
    const machine = await this.machines.get(id)
    if (!machine) throw new IsletError('sandbox_lost', `Sandbox ${id} is gone.`)
    return { record, machine }
  }

  /** The machine of a running or suspended sandbox; undefined: it has none. */
  async machine(id: string): Promise<Machine | undefined> {
    return this.machines.get(id)?.catch(() => undefined)
  }

  /** Undefined if a suspended sandbox has no cell. Throws if it is neither running nor suspended. */
  async machineWithCell(record: SandboxRecord): Promise<Machine | undefined> {
    if (record.memory !== null) return undefined
    return isSuspended(record) ? this.machine(record.id) : (await this.running(record.id)).machine
  }

  /** Runs alone among all lifecycle changes of this sandbox. */
  inTurn<T>(id: string, work: () => Promise<T>): Promise<T> {
    return this.turns.run([id], work)
  }

  /** The one way to change a status: the record, its event and what `also` writes become durable together. */
  move(id: string, verb: Verb, options: MoveOptions = {}): SandboxRecord {
    // Name, env and timeouts may have changed since the caller read the record.
    const current = options.from ?? this.record(id)
    const { change } = options
    const changes = typeof change === 'function' ? change(current) : change
    const moved = { ...move(current, verb, options.reason), ...changes }
    const data = options.reason === undefined ? options.data : { reason: options.reason, ...options.data }
    this.db.transaction(() => {
      this.table.save(moved)
      options.also?.()
      this.events.add(moved.id, MOVES[verb].event, data)
    })
    this.#tellMoved(id)
    return moved
  }

  /** Resolves when its status changes; rejects with `draining` when the server shuts down before. */
  nextMove(id: string): Promise<void> {
    if (this.#isLeaving) return Promise.reject(new IsletError('draining'))
    const moving = this.#moving.get(id) ?? Promise.withResolvers<void>()
    this.#moving.set(id, moving)
    return moving.promise
  }

  /** The server is about to shut down: no client can wake a suspended sandbox any more, so waiting for that ends. */
  leave(): void {
    this.#isLeaving = true
    this.warm.leave()
    for (const { reject } of this.#moving.values()) reject(new IsletError('draining'))
    this.#moving.clear()
  }

  close(): void {
    this.closed = true
    this.leave()
  }

  #tellMoved(id: string): void {
    this.#moving.get(id)?.resolve()
    this.#moving.delete(id)
  }

  async tellBegan(sandbox: RunningSandbox, how: Beginning): Promise<void> {
    sandbox.machine.hasBegun = true
    // All are called before any is awaited: later observers rely on what earlier ones have begun.
    const done = this.#observers.map((observer) => observer.began(sandbox, how))
    await Promise.all(done)
  }

  /** Uses of the sandbox, and its services, wait for this work. */
  settle(id: string, work: Promise<void>): Promise<void> {
    const settling = Promise.all([this.#settling.get(id), work]).then(() => {
      if (this.#settling.get(id) === settling) this.#settling.delete(id)
    })
    this.#settling.set(id, settling)
    return settling
  }

  /** Resolves when its patches are applied. */
  async settled(id: string): Promise<void> {
    // A sandbox that is being brought back has not begun.
    if (this.machines.has(id)) await this.machine(id)
    await this.#settling.get(id)
  }

  async tellSuspended(id: string, options: { kept: boolean }): Promise<void> {
    await Promise.all(this.#observers.map((observer) => observer.suspended?.(id, options)))
  }

  async disconnect(id: string): Promise<() => void> {
    const reconnects = await Promise.all(this.#observers.map((observer) => observer.disconnect?.(id)))
    return () => {
      for (const reconnect of reconnects) reconnect?.()
    }
  }

  /** An observer that fails to clean up holds up neither the others nor the sandbox. */
  async tellGone(id: string, options: { removed: boolean }): Promise<void> {
    for (const observer of this.#observers)
      await observer
        .gone(id, options)
        .catch((error) =>
          this.log.error({ error, sandbox: id }, 'an observer could not clean up; the next start does it'),
        )
  }

  /** A new cell over the existing layer: files are kept, processes are not. */
  startOver(id: string): Promise<Machine> {
    const machine = this.#startOver(id)
    this.machines.set(id, machine)
    machine.catch(() => this.machines.get(id) === machine && this.machines.delete(id))
    return machine
  }

  async #startOver(id: string): Promise<Machine> {
    await using claim = this.warm.claim()
    // The new cell gets the network of the record.
    const again = { ...this.record(id), cell: claim.id, networkDue: false, updatedAt: Date.now() }
    this.table.save(again)
    return await startMachine(this, again, claim)
  }

  /** Watches from now on whether it dies. */
  follow(id: string, machine: Machine): void {
    machine.guest.events.on('disconnect', () => this.watch(id, machine))
    machine.guest.events.once('lost', ({ reason }) => this.inBackground(id, this.fail(id, reason, machine)))
    this.watch(id, machine)
  }

  /** For a sandbox that may have died while it was not watched. */
  watch(id: string, machine: Machine): void {
    if (!machine.guest.connected) this.inBackground(id, this.#watchAway(id, machine))
  }

  /** For work that no caller awaits. It may fail, for example on a full disk; the server goes on. */
  inBackground(id: string, work: Promise<unknown>): void {
    work.catch((error) =>
      this.log.error({ error, sandbox: id }, 'background work failed; the next start repairs it'),
    )
  }

  /** With `machine`: only if it is still the machine of the sandbox. */
  async fail(id: string, reason: string, machine?: Machine): Promise<void> {
    if (machine && (await this.machine(id)) !== machine) return
    const record = this.table.get(id)
    if (this.closed || !record || record.status === 'stopped' || record.status === 'failed') return
    if (isSuspended(record)) return this.inTurn(id, () => this.#loseSuspended(id, reason, machine))
    this.log.warn({ sandbox: id, reason }, 'sandbox failed')
    this.move(id, 'fail', { reason })
    const work = this.letGo(id)
      .catch((error) => this.log.error({ error, sandbox: id }, 'a failed sandbox could not be stopped'))
      .finally(() => this.#failing.delete(id))
    this.#failing.set(id, work)
    await work
    await this.tellGone(id, { removed: false })
  }

  /** Its files are enough to start it again. */
  async #loseSuspended(id: string, reason: string, machine?: Machine): Promise<void> {
    if (machine && (await this.machine(id)) !== machine) return
    if (!isSuspended(this.record(id))) return this.fail(id, reason, machine)
    this.log.warn({ sandbox: id, reason }, 'the processes of a suspended sandbox are lost')
    await this.tellSuspended(id, { kept: false })
    await this.letGo(id)
  }

  /** Ends all its processes; its files stay. */
  async letGo(id: string): Promise<void> {
    const machine = await this.machine(id)
    this.machines.delete(id)
    if (machine) await stopCell(this, machine)
  }

  /** Waits until a failure is cleaned up. */
  async settleFailure(id: string): Promise<void> {
    await this.#failing.get(id)
  }

  /** Deletes layers that no record holds. The records are synced first: after a power cut they might name the layers again. */
  async dropLayers(layers: readonly string[]): Promise<void> {
    if (layers.length > 0) await this.db.sync()
    await this.warm.forget(layers)
    for (const layer of layers) await deleteLayer(this, layer)
  }

  /** The same in the background; only the shutdown of the server waits for it. */
  dropLater(layers: readonly string[]): void {
    if (layers.length === 0) return
    this.inTurn(layers[0]!, () => this.dropLayers(layers)).catch((error) =>
      this.log.error({ error, layers }, 'layers not deleted; the next start does it'),
    )
  }

  /** A disconnected guest redials unless it is dead. A suspended one is checked when it is woken. */
  async #watchAway(id: string, machine: Machine): Promise<void> {
    while (!this.closed && !machine.suspended && !machine.guest.connected) {
      if ((await this.machine(id)) !== machine) return
      if (!(await this.engine.alive(machine.cell).catch(() => true))) {
        if (machine.suspended) return
        return this.fail(id, await this.#whyEnded(id, machine), machine)
      }
      await setTimeout(AWAY_POLL_MS, undefined, { ref: false })
    }
  }

  /** With gVisor the memory limit ends the whole sandbox at once, and only this reports it. */
  async #whyEnded(id: string, { cell }: Machine): Promise<string> {
    const { oomKills } = await this.engine.usage(cell).catch(() => ({ oomKills: 0 }))
    const isTold = this.events.list(id, { types: ['oom'], limit: 1 }).events.length > 0
    if (oomKills === 0 || isTold) return 'Its first process ended.'
    this.events.add(id, 'oom')
    return 'It used more memory than its limit.'
  }
}
