// Creates sandboxes, from an image or from a saved state. The `creating` row, which holds the layer, is written before the
// `running` row or in the same transaction. That transaction also writes the Idempotency-Key, and acknowledges the sandbox. A
// create that fails or is cut off before leaves nothing.
import { type CopySandboxParsed, type CreateSandboxParsed, IsletError, newId } from '@islet/contract'
import type { SandboxRecord } from '../db/sandboxes.ts'
import type { SavedRecord } from '../db/saved-states.ts'
import type { EngineCapabilities } from '../engine/engine.ts'
import type { ImageClaim, Images } from '../image/image.ts'
import type { Activity } from './activity.ts'
import type { Capacity } from './capacity.ts'
import { asStartError } from './errors.ts'
import type { Fleet } from './fleet.ts'
import { Idempotency } from './idempotency.ts'
import { type Machine, settleMachine, startMachine, workdirOf } from './machine.ts'
import { copyRecord, newRecord, type SandboxView, toSandbox } from './record.ts'
import type { Runtimes, WorkOptions } from './runtimes/runtimes.ts'
import { makeLayer } from './saved/roots.ts'
import type { SavedStates } from './saved/saved-states.ts'
import type { Snapshots } from './saved/snapshots.ts'
import { assertSupported } from './supported.ts'
import type { CellClaim } from './warm/cells.ts'
import { type Plan, planOf } from './warm/roots-ahead.ts'

/**
 * Gives a port of a sandbox its preview. `also` runs in the same transaction and answers with the port whose preview this one
 * replaces.
 */
export type SetPort = (
  id: string,
  of: Pick<SandboxRecord['network'], 'port' | 'auth'>,
  also: () => number | null,
) => Promise<void>

export interface CreationOptions {
  fleet: Fleet
  setPort: SetPort
  savedStates: SavedStates
  images: Images
  runtimes: Runtimes
  maxSandboxes: number
  defaultRuntime: string
  snapshots: Snapshots
}

export interface CreateOptions extends WorkOptions {
  idempotencyKey?: string
  /** Its caller waits for it: if the server ends before it is removed, the next start removes it. */
  oneShot?: boolean
}

export interface CopyOptions {
  signal?: AbortSignal
  /** Claimed before; without it a cell is claimed when it is needed. */
  cell?: CellClaim
  /** The sandbox takes over the layer of the saved state, which has this limit and is used by nothing else. */
  takesLayer?: { limitBytes: number }
}

type CreateInput = CreateSandboxParsed | CopySandboxParsed
/** Fields of the record that say where a copy comes from. */
export type Given = Pick<SandboxRecord, 'origin'> & Partial<SandboxRecord>

interface BaseOfRecord {
  runtime: string
  capabilities: EngineCapabilities
  capacity: Capacity
}

interface MakeOptions extends CopyOptions {
  /** Runs in the transaction that acknowledges the sandbox. */
  commit?: (id: string) => void
  oneShot?: boolean | undefined
}

export class Creation {
  readonly #options: CreationOptions
  readonly #activity: Activity
  readonly #fleet: Fleet
  readonly #idempotency: Idempotency

  constructor(options: CreationOptions, activity: Activity) {
    this.#options = options
    this.#activity = activity
    this.#fleet = options.fleet
    this.#idempotency = new Idempotency(options.fleet.db)
  }

  /** Why no sandbox can be made now; undefined if one can. */
  unready(): string | undefined {
    if (this.#fleet.closed) return 'The server is shutting down.'
    if (this.#fleet.disk.low !== undefined) return this.#fleet.disk.low
    if (this.#isFull()) return this.#tooMany()
  }

  create(input: CreateSandboxParsed, options: CreateOptions = {}): Promise<SandboxView> {
    return this.#once(input, options, async (making) => {
      this.#assertCan(input)
      if (input.snapshot === undefined) {
        // Also with an Idempotency-Key: if the client goes away, nothing waits for its packages.
        using base = await this.#base(input, options)
        return await this.#make(input, newRecord(input, base), undefined, making)
      }
      const { id, saved } = this.#options.snapshots.resolve(input.snapshot)
      const given = { origin: { kind: 'snapshot', id }, baseSnapshot: id, patchesOf: null } as const
      await using kept = await this.#options.savedStates.use(saved)
      return await this.#copy(kept.saved, input, given, making)
    })
  }

  createFrom(
    saved: () => SavedRecord,
    input: CopySandboxParsed,
    given: Given,
    options: CreateOptions = {},
  ): Promise<SandboxView> {
    return this.#once({ from: given.origin?.id, ...input }, options, async (making) => {
      this.#assertCan(input)
      await using kept = await this.#options.savedStates.use(saved())
      return await this.#copy(kept.saved, input, given, making)
    })
  }

  /** As `createFrom`, from a saved state that the caller is using. */
  async copy(
    saved: SavedRecord,
    input: CopySandboxParsed,
    given: Given,
    options: CopyOptions,
  ): Promise<SandboxView> {
    this.#assertCan(input)
    return this.#copy(saved, input, given, options)
  }

  #copy(
    saved: SavedRecord,
    input: CopySandboxParsed,
    given: Given,
    options: MakeOptions,
  ): Promise<SandboxView> {
    const { capacity, storage } = this.#fleet
    // This server may run another engine or isolation than the one that saved it.
    const { engine, isolation } = this.#fleet.engine.capabilities
    const layer = options.takesLayer ? saved.state.root.layer : newId('layer')
    const record = copyRecord(saved, input, { engine, isolation, ...given, storage, capacity, layer })
    return this.#make(input, record, saved, options)
  }

  async #once(
    asked: object,
    { idempotencyKey, signal, oneShot }: CreateOptions,
    make: (options: MakeOptions) => Promise<SandboxView>,
  ): Promise<SandboxView> {
    if (!idempotencyKey) return make({ signal, oneShot })
    // Without `signal`: a client that went away may come back with its key.
    return this.#idempotency.once(
      idempotencyKey,
      asked,
      (commit) => make({ commit }),
      (id) => this.#get(id),
      signal,
    )
  }

  #assertCan(input: CreateInput): void {
    if (this.#fleet.closed) throw new IsletError('draining')
    this.#fleet.disk.assertRoom()
    this.#assertRoom()
    assertSupported(input, this.#fleet.engine.capabilities)
    this.#fleet.capacity.assertFits(input.resources)
    this.#fleet.assertNameFree(input.name)
  }

  async #make(
    input: CreateInput,
    made: SandboxRecord,
    saved: SavedRecord | undefined,
    options: MakeOptions,
  ): Promise<SandboxView> {
    const { db, layers, table, warm } = this.#fleet
    // Checked again: others may have been made while this one waited for its image or layers.
    this.#assertRoom()
    // Nothing is awaited between this check and the row.
    this.#fleet.assertNameFree(made.name)
    const memory = saved && this.#options.savedStates.memoryOf(saved)
    // The saved state of a fork is used only once, so no root is prepared for it.
    const isPassing = saved !== undefined && !this.#options.savedStates.table.isNamed(saved.id)
    const plan = isPassing || memory ? undefined : planOf(made, saved?.state.root)
    await using claim = options.cell ?? warm.claim(plan)
    const ready = claim.ahead?.layer ?? (saved ? undefined : warm.takeLayer(made.resources.diskBytes))
    const id = claim.ahead?.id ?? made.id
    const root = ready ? { ...made.root, layer: ready } : made.root
    const fresh: SandboxRecord = { ...made, id, cell: claim.id, root, oneShot: options.oneShot ?? false }
    // Written while the cell is bound. After a crash before that, the next start removes cell and layer, because no row names them.
    const recorded = db.beforeNext(() => {
      table.save(fresh)
      layers.hold(fresh.id, fresh.root)
      if (saved) this.#options.savedStates.giveRows(saved, fresh)
    })
    let isFlushed = false
    const flushed = () => {
      isFlushed = true
    }
    recorded.then(flushed, () => {})
    const layer = ready ? undefined : this.#makeLayer(fresh, saved, options)
    const machine = startMachine(this.#fleet, fresh, claim, {
      layer,
      memory,
      // A copy has services and patches, which need a running sandbox: its observers are told later.
      tell: saved
        ? undefined
        : (begun) => this.#fleet.tellBegan({ record: fresh, machine: begun }, 'created'),
    })
    this.#fleet.machines.set(fresh.id, machine)
    try {
      const started = await machine
      const workdir = workdirOf(started, fresh)
      const settled = { ...fresh, workdir }
      await settleMachine(started, settled, input)
      await this.#openPort(settled)
      options.signal?.throwIfAborted()
      // A row that was not flushed yet cannot have been changed by others.
      const record = this.#started(settled, { isFlushed, commit: options.commit })
      await recorded
      this.#fleet.follow(record.id, started)
      if (saved) await this.#fleet.tellBegan({ record, machine: started }, memory ? 'adopted' : 'restarted')
      options.signal?.throwIfAborted()
      return this.#get(record.id)
    } catch (error) {
      await this.#fleet.inTurn(fresh.id, () => this.#undo(fresh, machine))
      await recorded.catch(() => this.#fleet.dropLater([root.layer]))
      throw options.signal?.aborted ? options.signal.reason : asStartError(error)
    }
  }

  /** Undefined: the layer needs no work. */
  #makeLayer(
    { root, resources }: SandboxRecord,
    saved: SavedRecord | undefined,
    { takesLayer }: MakeOptions,
  ): Promise<void> | undefined {
    const { storage } = this.#fleet
    const { layer } = root
    const limitBytes = resources.diskBytes
    if (layer !== saved?.state.root.layer)
      return makeLayer(storage, { layer, over: saved?.state.root, limitBytes })
    // The limit of the source may have changed while it was saved.
    if (storage.capabilities.diskLimit && takesLayer?.limitBytes !== limitBytes)
      return storage.setLimit(layer, limitBytes)
  }

  #started(
    record: SandboxRecord,
    { isFlushed, commit }: { isFlushed: boolean; commit?: MakeOptions['commit'] },
  ): SandboxRecord {
    const { origin, runtime, workdir } = record
    const also = () => {
      this.#assertRecorded(record)
      this.#fleet.events.add(record.id, 'created', { runtime, ...(origin && { origin: { ...origin } }) })
      commit?.(record.id)
    }
    const change = { workdir }
    const started = this.#fleet.move(record.id, 'start', {
      from: isFlushed ? undefined : record,
      change,
      also,
    })
    this.#activity.begin(record.id)
    return started
  }

  /** Before the sandbox is acknowledged: after a crash neither it nor its preview is there. */
  async #openPort(record: SandboxRecord): Promise<void> {
    if (record.network.port === null) return
    await this.#options.setPort(record.id, record.network, () => {
      this.#assertRecorded(record)
      return null
    })
  }

  /** The `creating` row may not have been written, on a full disk. */
  #assertRecorded({ root }: SandboxRecord): void {
    if (!this.#fleet.layers.isHeld(root.layer)) throw new IsletError('server_disk_full')
  }

  /** The plan of a create without options; undefined if its image is not here. */
  async usualPlan(): Promise<Plan | undefined> {
    const { images, defaultRuntime } = this.#options
    const { capacity, engine } = this.#fleet
    const { capabilities } = engine
    if (capabilities.wall !== true) return planOf(newRecord({}, { runtime: 'host', capabilities, capacity }))
    const image = await images.resolve(defaultRuntime).catch(() => undefined)
    return image && planOf(newRecord({}, { runtime: defaultRuntime, image, capabilities, capacity }))
  }

  /** The image is not collected before the base is disposed of, when the record names it. */
  async #base(
    input: CreateSandboxParsed,
    options: WorkOptions,
  ): Promise<BaseOfRecord & Disposable & Partial<ImageClaim>> {
    const { runtimes, defaultRuntime } = this.#options
    const { capacity, engine } = this.#fleet
    const { capabilities } = engine
    // An engine without a wall has no images: it runs on the files of the machine.
    if (capabilities.wall !== true) return { runtime: 'host', capabilities, capacity, [Symbol.dispose]() {} }
    const runtime = input.runtime ?? defaultRuntime
    const claim = await runtimes.claim(runtime, input, options)
    return { runtime, capabilities, capacity, ...claim }
  }

  async #undo(record: SandboxRecord, machine: Promise<Machine>): Promise<void> {
    const { db, layers, table } = this.#fleet
    await machine.catch(() => {})
    await this.#fleet.tellGone(record.id, { removed: true })
    await this.#fleet.letGo(record.id)
    this.#activity.forget(record.id)
    const unheld = db.transaction(() => {
      table.remove(record.id)
      return layers.holdOnly(record.id, undefined)
    })
    await this.#fleet.dropLayers(unheld)
  }

  #assertRoom(): void {
    if (!this.#isFull()) return
    throw new IsletError('too_many_requests', this.#tooMany(), {
      hint: 'Delete some, or raise ISLET_MAX_SANDBOXES.',
    })
  }

  #tooMany(): string {
    return `This server holds at most ${this.#options.maxSandboxes} sandboxes.`
  }

  #isFull(): boolean {
    return this.#fleet.table.countLive() >= this.#options.maxSandboxes
  }

  #get(id: string): SandboxView {
    return toSandbox(this.#fleet.record(id))
  }
}
