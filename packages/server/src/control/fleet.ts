// The sandboxes that are there: their records and machines, who is told of what becomes of them, and the one way to move
// them. What is done with them is in the files beside it.
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
import { assertRunning, isStill, MOVES, move, type Verb } from './lifecycle.ts'
import { type Machine, startMachine } from './machine.ts'
import { deleteLayer, stopCell } from './warm/cells.ts'
import { WarmPool, type WarmPoolOptions } from './warm/pool.ts'

/** How soon the death of a sandbox's first process is noticed after its connection broke. */
const AWAY_POLL_MS = 100

interface FleetOptions {
  db: Db
  engine: Engine
  storage: Storage
  log: Log
  disk: Disk
  warm: WarmPoolOptions
  /** The most that a sandbox may have, where the operator says so. */
  ceilings?: Partial<SandboxRecord['resources']>
}

/** What the data services need of a running sandbox. */
export interface RunningSandbox {
  record: SandboxRecord
  machine: Machine
}

/**
 * How a sandbox came to run: just made; found running by a new server; started over its files, with nothing running in it;
 * or going on where it stood still.
 */
export type Beginning = 'created' | 'adopted' | 'restarted' | 'resumed'

/** Told when a sandbox becomes usable, when it stands still and when it is gone, so that what runs inside can be followed. */
export interface SandboxObserver {
  /** In the order of `observe`. A create answers only after all of them are done. */
  began(sandbox: RunningSandbox, how: Beginning): void | Promise<void>
  /**
   * From now on nothing may be asked of it, until `began`. `kept`: what runs inside will go on then (`resumed`, or `adopted` by
   * another server); else it ends now, and `began` will say `restarted`.
   */
  suspended?(sandboxId: string, options: { kept: boolean }): void | Promise<void>
  /** Its memory is about to be saved, and no connection to this server can be: they end. Answers with what lets it have new ones. */
  disconnect?(sandboxId: string): Promise<() => void>
  /** For good; not `removed`: it failed, and what it holds can still be read. */
  gone(sandboxId: string, options: { removed: boolean }): Promise<void>
  /** A cell that may become a sandbox's: what it will need can be made ready. */
  waits?(cell: Cell): Promise<void>
  /** It is about to end, whether it ever was a sandbox's or not. */
  ends?(cell: Cell): Promise<void>
}

export interface MoveOptions {
  reason?: string
  /** Of the record as it is by then. */
  change?: Partial<SandboxRecord> | ((current: SandboxRecord) => Partial<SandboxRecord>)
  data?: SandboxEvent['data']
  /** As it is: nobody else can have changed it. */
  from?: SandboxRecord
  /** More that becomes durable together with the move. */
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
  /** One thing at a time is done to a sandbox's life. */
  readonly turns = new Locks()
  readonly machines = new Map<string, Promise<Machine>>()
  /** Those that are being stopped or exchanged right now: who wants to use one waits for its turn. */
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

  /** For the sandbox with this id, if there is one already. */
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

  /** The machine of a sandbox that runs or stands still; undefined: there is nothing to go on with. */
  async machine(id: string): Promise<Machine | undefined> {
    return this.machines.get(id)?.catch(() => undefined)
  }

  /** Undefined for a suspended one whose cell is gone; throws for one that does not run for another reason. */
  async machineWithCell(record: SandboxRecord): Promise<Machine | undefined> {
    if (record.memory !== null) return undefined
    return isStill(record) ? this.machine(record.id) : (await this.running(record.id)).machine
  }

  /** Alone among all that change what becomes of this sandbox. */
  inTurn<T>(id: string, work: () => Promise<T>): Promise<T> {
    return this.turns.run([id], work)
  }

  /** The one way to change a status: the record, its event and what `also` writes become durable together. */
  move(id: string, verb: Verb, options: MoveOptions = {}): SandboxRecord {
    // Name, env and timeouts may have been changed since the caller looked.
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

  /** Until its status changes; `draining` when the server goes away before. */
  nextMove(id: string): Promise<void> {
    if (this.#isLeaving) return Promise.reject(new IsletError('draining'))
    const moving = this.#moving.get(id) ?? Promise.withResolvers<void>()
    this.#moving.set(id, moving)
    return moving.promise
  }

  /** The clients are about to lose this server: none can tell what stands still to go on, so nobody waits for that. */
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
    // Each is called before any is waited for: later ones may rely on what earlier ones have begun.
    const done = this.#observers.map((observer) => observer.began(sandbox, how))
    await Promise.all(done)
  }

  /** Whoever uses the sandbox, and its services, wait for this work. */
  settle(id: string, work: Promise<void>): Promise<void> {
    const settling = Promise.all([this.#settling.get(id), work]).then(() => {
      if (this.#settling.get(id) === settling) this.#settling.delete(id)
    })
    this.#settling.set(id, settling)
    return settling
  }

  /** What is done to it at its beginning, patches, is over. */
  async settled(id: string): Promise<void> {
    // One that is being brought back has not begun.
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

  /** What one of them could not clean up keeps neither the others nor the sandbox. */
  async tellGone(id: string, options: { removed: boolean }): Promise<void> {
    for (const observer of this.#observers)
      await observer
        .gone(id, options)
        .catch((error) => this.log.error({ error, sandbox: id }, 'not cleaned up; the next start does it'))
  }

  /** A new cell over the layer that is there: files are kept, processes are not. */
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

  /** Notices from now on when it dies. */
  follow(id: string, machine: Machine): void {
    machine.guest.events.on('disconnect', () => this.watch(id, machine))
    machine.guest.events.once('lost', ({ reason }) => this.inBackground(id, this.fail(id, reason, machine)))
    this.watch(id, machine)
  }

  /** For one that may have died while nobody looked. */
  watch(id: string, machine: Machine): void {
    if (!machine.guest.connected) this.inBackground(id, this.#watchAway(id, machine))
  }

  /** What nobody waits for. It may fail, on a full disk for example; the server goes on. */
  inBackground(id: string, work: Promise<unknown>): void {
    work.catch((error) => this.log.error({ error, sandbox: id }, 'not done; the next start sets it right'))
  }

  /** With `machine`: unless it has another one by now. */
  async fail(id: string, reason: string, machine?: Machine): Promise<void> {
    if (machine && (await this.machine(id)) !== machine) return
    const record = this.table.get(id)
    if (this.closed || !record || record.status === 'stopped' || record.status === 'failed') return
    if (isStill(record)) return this.inTurn(id, () => this.#loseWhatStoodStill(id, reason, machine))
    this.log.warn({ sandbox: id, reason }, 'sandbox failed')
    this.move(id, 'fail', { reason })
    const work = this.letGo(id)
      .catch((error) => this.log.error({ error, sandbox: id }, 'not stopped'))
      .finally(() => this.#failing.delete(id))
    this.#failing.set(id, work)
    await work
    await this.tellGone(id, { removed: false })
  }

  /** What it holds on disk is all that it needs to run again. */
  async #loseWhatStoodStill(id: string, reason: string, machine?: Machine): Promise<void> {
    if (machine && (await this.machine(id)) !== machine) return
    if (!isStill(this.record(id))) return this.fail(id, reason, machine)
    this.log.warn({ sandbox: id, reason }, 'what ran in a sandbox that stands still is lost')
    await this.tellSuspended(id, { kept: false })
    await this.letGo(id)
  }

  /** Ends what runs; its files stay. */
  async letGo(id: string): Promise<void> {
    const machine = await this.machine(id)
    this.machines.delete(id)
    if (machine) await stopCell(this, machine)
  }

  /** A failure that is being cleaned up is waited for. */
  async settleFailure(id: string): Promise<void> {
    await this.#failing.get(id)
  }

  /** Those that nobody holds any more: not before that survives a power cut, or the records might name them again. */
  async dropLayers(layers: readonly string[]): Promise<void> {
    if (layers.length > 0) await this.db.sync()
    await this.warm.forget(layers)
    for (const layer of layers) await deleteLayer(this, layer)
  }

  /** The same when there is time: only the end of the server waits for it. */
  dropLater(layers: readonly string[]): void {
    if (layers.length === 0) return
    this.inTurn(layers[0]!, () => this.dropLayers(layers)).catch((error) =>
      this.log.error({ error, layers }, 'layers not deleted; the next start does it'),
    )
  }

  /** A guest that is away redials, unless it is dead. One that stands still is looked at when it is woken. */
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

  /** Where the memory limit ends all at once (gvisor), nobody else tells of it. */
  async #whyEnded(id: string, { cell }: Machine): Promise<string> {
    const { oomKills } = await this.engine.usage(cell).catch(() => ({ oomKills: 0 }))
    const isTold = this.events.list(id, { types: ['oom'], limit: 1 }).events.length > 0
    if (oomKills === 0 || isTold) return 'Its first process ended.'
    this.events.add(id, 'oom')
    return 'It used more memory than its limit.'
  }
}
