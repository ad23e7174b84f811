// The sandboxes as callers see them: made, found, changed and removed, and brought back after a restart.
import { setImmediate } from 'node:timers/promises'
import {
  type CopySandboxParsed,
  type CreateSandboxParsed,
  IsletError,
  type ListSandboxesParsed,
  type Sandbox,
  type SandboxPage,
  type SandboxUsage,
  type ServerInfo,
  type TimeoutsParsed,
  type UpdateSandboxParsed,
} from '@islet/contract'
import type { SandboxRecord } from '../db/sandboxes.ts'
import type { SavedRecord } from '../db/saved-states.ts'
import type { EngineCapabilities } from '../engine/engine.ts'
import type { Image, Images } from '../image/image.ts'
import type { Control } from './control.ts'
import type { Fleet, RunningSandbox, SandboxObserver } from './fleet.ts'
import { Idempotency } from './idempotency.ts'
import { assertMade, isStill } from './lifecycle.ts'
import { asStartError, type Machine, type ShellAhead, settleMachine, startMachine } from './machine.ts'
import { copyRecord, newRecord, patchRecord, patchTimeouts, toSandbox } from './record.ts'
import { bringBack } from './recovery.ts'
import { makeLayer } from './roots.ts'
import type { Saves } from './saves.ts'
import { serverInfo } from './server-info.ts'
import { assertSupported } from './supported.ts'
import { type KillOptions, Suspension, type Use } from './suspension.ts'
import { usageOf } from './usage.ts'

/** Records of stopped sandboxes that are remembered, and how often the others are forgotten. */
const KEEP_STOPPED = 10_000
const PRUNE_EVERY = 100

export interface SandboxesOptions {
  fleet: Fleet
  saves: Saves
  images: Images
  maxSandboxes: number
  defaultRuntime: string
  /** By id or tag; throws `snapshot_not_found`. */
  snapshot(ref: string): { id: string; saved: SavedRecord }
}

/** What a new sandbox begins with. */
interface Base {
  /** It begins as this. */
  saved?: SavedRecord
  record(saved: SavedRecord | undefined): SandboxRecord
}

export interface CreateOptions {
  idempotencyKey?: string
  signal?: AbortSignal
  /** Whose id the record has. */
  shell?: ShellAhead
}

type CreateInput = CreateSandboxParsed | CopySandboxParsed
type Given = Pick<SandboxRecord, 'origin'> & Partial<SandboxRecord>

interface MakeOptions {
  /** In the transaction that acknowledges it. */
  commit?: (id: string) => void
  signal?: AbortSignal
  shell?: ShellAhead
}

export class Sandboxes implements Control {
  readonly suspension: Suspension
  readonly #options: SandboxesOptions
  readonly #fleet: Fleet
  readonly #idempotency: Idempotency
  readonly #deleting = new Map<string, Promise<Sandbox>>()
  readonly #startedAt = new Date()
  #stops = 0

  constructor(options: SandboxesOptions) {
    this.#options = options
    this.#fleet = options.fleet
    this.#idempotency = new Idempotency(options.fleet.db)
    this.suspension = new Suspension({
      fleet: options.fleet,
      memoryDir: options.saves.memoryDir,
      kill: (id, options) => this.#fleet.inTurn(id, () => this.#remove(id, options)),
    })
  }

  observe(observer: SandboxObserver): void {
    this.#fleet.observe(observer)
  }

  /** Adopts what still runs, restarts what the machine's reboot ended, and sweeps what a crash left half made. */
  async start(): Promise<void> {
    await this.#prune()
    await bringBack(this.#fleet, this.#options.saves, this.suspension)
  }

  create(input: CreateSandboxParsed, options: CreateOptions = {}): Promise<Sandbox> {
    return this.#once(input, options, input, async () => {
      if (input.snapshot === undefined) {
        const base = await this.#base(input)
        return { record: () => newRecord(input, base) }
      }
      const { id, saved } = this.#options.snapshot(input.snapshot)
      return this.#copy(saved, input, { origin: { kind: 'snapshot', id }, baseSnapshot: id, patchesOf: null })
    })
  }

  /** A sandbox that begins as another was. `given` says where it comes from. */
  createFrom(
    saved: () => SavedRecord,
    input: CopySandboxParsed,
    given: Given,
    options: CreateOptions = {},
  ): Promise<Sandbox> {
    const asked = { from: given.origin?.id, ...input }
    return this.#once(asked, options, input, async () => this.#copy(saved(), input, given))
  }

  #copy(saved: SavedRecord, input: CopySandboxParsed, given: Given): Base {
    const { storage } = this.#fleet
    return { saved, record: (flat = saved) => copyRecord(flat, input, { ...given, storage }) }
  }

  async #once(
    asked: object,
    options: CreateOptions,
    input: CreateInput,
    base: () => Promise<Base>,
  ): Promise<Sandbox> {
    const { idempotencyKey } = options
    if (!idempotencyKey) return this.#create(input, base, options)
    // A client that went away may come back with its key, so only a create without one is undone then.
    return this.#idempotency.once(
      idempotencyKey,
      asked,
      (commit) => this.#create(input, base, { commit }),
      (id) => this.get(id),
    )
  }

  async #create(input: CreateInput, base: () => Promise<Base>, options: MakeOptions): Promise<Sandbox> {
    if (this.#fleet.closed) throw new IsletError('draining')
    this.#assertRoom()
    assertSupported(input, this.#fleet.engine.capabilities)
    const { saved, record } = await base()
    if (!saved) return this.#make(input, record(undefined), undefined, options)
    return this.#options.saves.using(saved, (flat) => this.#make(input, record(flat), flat, options))
  }

  async #make(
    input: CreateInput,
    fresh: SandboxRecord,
    saved: SavedRecord | undefined,
    options: MakeOptions,
  ): Promise<Sandbox> {
    const { db, layers, storage, table } = this.#fleet
    // Again: others may have been made while this one's image or layers were.
    this.#assertRoom()
    db.transaction(() => {
      table.save(fresh)
      layers.hold(fresh.id, fresh.root)
      if (saved) this.#options.saves.giveRows(saved, fresh)
    })
    const limitBytes = fresh.resources.diskBytes
    const layer = makeLayer(storage, { layer: fresh.root.layer, over: saved?.state.root, limitBytes })
    const memory = saved && this.#options.saves.memoryOf(saved)
    const machine = startMachine(this.#fleet, fresh, { layer, memory, shell: options.shell?.take() })
    this.#fleet.machines.set(fresh.id, machine)
    try {
      const started = await machine
      const workdir = await settleMachine(started, fresh, input)
      const settled = { ...fresh, workdir }
      // One that begins as another was has services and patches, which want it to run.
      if (!saved) await this.#fleet.tellBegan({ record: settled, machine: started }, 'created')
      options.signal?.throwIfAborted()
      const record = this.#started(settled, options.commit)
      this.#fleet.follow(record.id, started)
      if (saved) await this.#fleet.tellBegan({ record, machine: started }, memory ? 'adopted' : 'restarted')
      options.signal?.throwIfAborted()
      return this.get(record.id)
    } catch (error) {
      await this.#fleet.inTurn(fresh.id, () => this.#undo(fresh, machine))
      throw options.signal?.aborted ? options.signal.reason : asStartError(error)
    }
  }

  #started(record: SandboxRecord, commit?: (id: string) => void): SandboxRecord {
    const { origin, runtime } = record
    const also = () => {
      this.#fleet.events.add(record.id, 'created', { runtime, ...(origin && { origin: { ...origin } }) })
      commit?.(record.id)
    }
    const change = { workdir: record.workdir }
    const started = this.#fleet.move(record.id, 'start', { change, also })
    this.suspension.activity.begin(record.id)
    return started
  }

  async #base(
    input: CreateSandboxParsed,
  ): Promise<{ runtime: string; image?: Image; capabilities: EngineCapabilities }> {
    const { images, defaultRuntime } = this.#options
    const runtime = input.runtime ?? defaultRuntime
    const { capabilities } = this.#fleet.engine
    // An engine without a wall runs on the machine's own files: there is no other image for it.
    if (capabilities.wall !== true) return { runtime: 'host', capabilities }
    return { runtime, image: await images.resolve(runtime), capabilities }
  }

  async #undo(record: SandboxRecord, machine: Promise<Machine>): Promise<void> {
    const { db, layers, table } = this.#fleet
    if (await machine.catch(() => undefined)) {
      await this.#fleet.tellGone(record.id, { removed: true })
      await this.#fleet.letGo(record.id)
    }
    this.#fleet.machines.delete(record.id)
    this.suspension.activity.forget(record.id)
    const unheld = db.transaction(() => {
      table.remove(record.id)
      return layers.holdOnly(record.id, undefined)
    })
    await this.#fleet.dropLayers(unheld)
  }

  get(id: string): Sandbox {
    return toSandbox(this.record(id))
  }

  record(id: string): SandboxRecord {
    return this.#fleet.record(id)
  }

  running(id: string): Promise<RunningSandbox> {
    return this.suspension.running(id)
  }

  /** Its patches are applied. */
  settled(id: string): Promise<void> {
    return this.#fleet.settled(id)
  }

  /** For whatever somebody does with a sandbox: it is woken if need be, and not idle until the use is over. */
  use(id: string): Promise<Use> {
    return this.suspension.use(id)
  }

  list(query: ListSandboxesParsed): SandboxPage {
    const { records, total, cursor } = this.#fleet.table.list(query)
    return { sandboxes: records.map(toSandbox), total, ...(cursor && { cursor }) }
  }

  async update(id: string, patch: UpdateSandboxParsed): Promise<Sandbox> {
    if (patch.resources) await this.#limit(id, patch)
    const record = patchRecord(this.record(id), patch)
    this.#fleet.table.save(record)
    return toSandbox(record)
  }

  async #limit(id: string, patch: UpdateSandboxParsed): Promise<void> {
    const { engine, storage } = this.#fleet
    assertSupported({ resources: patch.resources }, engine.capabilities)
    const record = this.record(id)
    // One that stands still may have nothing to limit: then the limits wait for its wake.
    const machine = isStill(record) ? await this.#fleet.machine(id) : (await this.running(id)).machine
    const { resources } = patchRecord(record, patch)
    if (machine && record.memory === null) await engine.limit(machine.shell, resources)
    if (patch.resources?.disk) await storage.setLimit(record.root.layer, resources.diskBytes)
  }

  setTimeouts(id: string, patch: TimeoutsParsed): Sandbox {
    const record = this.record(id)
    if (record.status === 'stopped') throw new IsletError('invalid_state', `Sandbox ${id} is stopped.`)
    const timeouts = patchTimeouts(record.timeouts, patch)
    const changed = { ...record, timeouts, updatedAt: Date.now() }
    this.#fleet.db.transaction(() => {
      this.#fleet.table.save(changed)
      this.#fleet.events.add(id, 'timeout.changed', { ...timeouts })
    })
    this.suspension.activity.begin(id)
    return toSandbox(changed)
  }

  async pause(id: string): Promise<Sandbox> {
    return toSandbox(await this.suspension.pause(id))
  }

  async resume(id: string): Promise<Sandbox> {
    return toSandbox(await this.suspension.resume(id))
  }

  async hibernate(id: string): Promise<Sandbox> {
    return toSandbox(await this.suspension.hibernate(id))
  }

  async wake(id: string, options: { idleMs?: number } = {}): Promise<Sandbox> {
    return toSandbox(await this.suspension.wake(id, options))
  }

  async delete(id: string): Promise<Sandbox> {
    assertMade(this.record(id))
    return this.#stop(id)
  }

  /** All who ask at once share one. */
  #stop(id: string): Promise<Sandbox> {
    let work = this.#deleting.get(id)
    if (!work) {
      work = this.#fleet.inTurn(id, () => this.#remove(id)).finally(() => this.#deleting.delete(id))
      this.#deleting.set(id, work)
    }
    return work
  }

  async #remove(id: string, options?: KillOptions): Promise<Sandbox> {
    const record = this.record(id)
    if (record.status === 'stopped' || options?.isStillMeant() === false) return toSandbox(record)
    // The record says stopped first: whatever a crash leaves from here on is swept at the next start.
    let unheld: string[] = []
    const also = () => {
      options?.also?.()
      unheld = this.#fleet.layers.holdOnly(id, undefined)
    }
    const stopped = this.#fleet.move(id, 'stop', { reason: options?.reason, change: { memory: null }, also })
    this.suspension.activity.forget(id)
    await this.#fleet.settleFailure(id)
    await this.#fleet.letGo(id)
    await this.#fleet.tellGone(id, { removed: true })
    await this.#fleet.dropLayers(unheld)
    await this.suspension.forgetMemory(record)
    if (++this.#stops % PRUNE_EVERY === 0) await this.#prune()
    return toSandbox(stopped)
  }

  /** With each go thousands of events and processes: others have their turn in between. */
  async #prune(): Promise<void> {
    for (const id of this.#fleet.table.old(KEEP_STOPPED)) {
      this.#fleet.table.remove(id)
      await setImmediate()
    }
  }

  usage(id: string): Promise<SandboxUsage> {
    return usageOf(this.#fleet, id)
  }

  /** How often the memory limit has killed something in this sandbox. */
  async oomKills(machine: Machine): Promise<number> {
    return (await this.#fleet.engine.usage(machine.shell)).oomKills
  }

  unready(): string | undefined {
    if (this.#fleet.closed) return 'The server is shutting down.'
    if (this.#isFull()) return `This server holds at most ${this.#options.maxSandboxes} sandboxes.`
  }

  #assertRoom(): void {
    if (!this.#isFull()) return
    throw new IsletError('too_many_requests', `${this.unready()}`, {
      hint: 'Delete some, or raise ISLET_MAX_SANDBOXES.',
    })
  }

  #isFull(): boolean {
    return this.#fleet.table.countLive() >= this.#options.maxSandboxes
  }

  info(): ServerInfo {
    return serverInfo(this.#fleet, this.#startedAt)
  }

  /** Images that sandboxes, checkpoints and snapshots stand on. */
  imagesInUse(): Set<string> {
    const held = this.#fleet.table.holding().flatMap((record) => record.image ?? [])
    return new Set([...held, ...this.#options.saves.table.images()])
  }

  /** No more creates; the sandboxes go on without this server, or with `all` are stopped too. */
  async close(options: { all?: boolean } = {}): Promise<void> {
    this.suspension.activity.close()
    if (options.all)
      await Promise.all(this.#fleet.table.live().map((record) => this.delete(record.id).catch(() => {})))
    this.#fleet.close()
    await Promise.all(this.#deleting.values())
    // One that is frozen for a checkpoint is not left so.
    await this.#fleet.turns.idle()
    await Promise.all(
      [...this.#fleet.machines.values()].map((machine) =>
        machine.then(
          ({ guest }) => guest.close(),
          () => {},
        ),
      ),
    )
  }
}
