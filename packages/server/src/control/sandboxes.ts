// Sandboxes as callers see them: create, find, change, suspend, fork and delete them, and bring them back after a restart.
import { setImmediate } from 'node:timers/promises'
import type {
  AwakeReason,
  CopySandboxParsed,
  CreateSandboxParsed,
  ForkSandboxParsed,
  ListSandboxesParsed,
  SandboxDetail,
  SandboxPage,
  SandboxUsage,
  ServerInfo,
  TimeoutsParsed,
  UpdateSandboxParsed,
} from '@islet/contract'
import type { PreviewRecord } from '../db/previews.ts'
import type { SandboxRecord } from '../db/sandboxes.ts'
import type { SavedRecord } from '../db/saved-states.ts'
import { Shared } from '../lib/shared.ts'
import { VERSION } from '../version.ts'
import { type CreateOptions, Creation, type CreationOptions, type Given } from './creation.ts'
import type { Fleet, RunningSandbox, SandboxObserver } from './fleet.ts'
import { Held } from './held.ts'
import { assertMade, assertNotStopped } from './lifecycle.ts'
import type { Machine } from './machine.ts'
import { switchNetwork } from './network.ts'
import { patchRecord, patchTimeouts, type SandboxView, toSandbox } from './record.ts'
import { bringBack } from './recovery.ts'
import { type ForkResult, fork } from './saved/forks.ts'
import { assertSupported } from './supported.ts'
import { type KillOptions, Suspension, type Use } from './suspension.ts'

/** How many records of stopped sandboxes are kept. The others are removed after every PRUNE_EVERY stops. */
const KEEP_STOPPED = 10_000
const PRUNE_EVERY = 100

const HELD = { eachBytes: 16 * 1024 * 1024, allBytes: 256 * 1024 * 1024 }

const NO_USAGE = { memoryBytes: 0, memoryPeakBytes: 0, cpuUsec: 0, pids: 0, oomKills: 0 }

/** The memory figures that programs inside can read are updated at most this often. */
const SHOW_EVERY_MS = 250

type DetailView = Omit<SandboxDetail, 'url'>

export class Sandboxes {
  readonly suspension: Suspension
  /** Memory that calls use for large bodies and answers. */
  readonly held = new Held(HELD)
  readonly #options: CreationOptions
  readonly #fleet: Fleet
  readonly #creation: Creation
  readonly #deleting = new Shared<SandboxView>()
  readonly #startedAt = new Date()
  #stops = 0

  constructor(options: CreationOptions) {
    this.#options = options
    this.#fleet = options.fleet
    this.suspension = new Suspension({
      fleet: options.fleet,
      memory: options.savedStates.memory,
      kill: (id, options) => this.#fleet.inTurn(id, () => this.#remove(id, options)),
    })
    this.#creation = new Creation(options, this.suspension.activity)
  }

  observe(observer: SandboxObserver): void {
    this.#fleet.observe(observer)
  }

  /** Adopts sandboxes that still run, restarts those that a reboot ended, and removes what a crash left half made. */
  async start(): Promise<void> {
    await this.#prune()
    await bringBack(this.#fleet, this.#options.savedStates, this.suspension)
  }

  /** Answers once the sandbox runs. The same `idempotencyKey` with the same input answers with the same sandbox. */
  create(input: CreateSandboxParsed, options: CreateOptions = {}): Promise<SandboxView> {
    return this.#creation.create(input, options)
  }

  /** A sandbox that begins as another one was. `given` says where it comes from. */
  createFrom(
    saved: () => SavedRecord,
    input: CopySandboxParsed,
    given: Given,
    options: CreateOptions = {},
  ): Promise<SandboxView> {
    return this.#creation.createFrom(saved, input, given, options)
  }

  /** All forks begin as the source is at one instant; each succeeds or fails by itself. Once aborted, none stays. */
  fork(id: string, input: ForkSandboxParsed, options: { signal?: AbortSignal } = {}): Promise<ForkResult> {
    const parts = { fleet: this.#fleet, savedStates: this.#options.savedStates, creation: this.#creation }
    return fork({ ...parts, remove: (made) => this.delete(made) }, id, input, options)
  }

  get(id: string): DetailView {
    return this.#detail(this.record(id))
  }

  #detail(record: SandboxRecord): DetailView {
    return { ...toSandbox(record), awake: this.suspension.activity.awake(record) }
  }

  record(id: string): SandboxRecord {
    return this.#fleet.record(id)
  }

  /** It exists and is not stopped. */
  isThere(id: string): boolean {
    const record = this.#fleet.table.get(id)
    return record !== undefined && record.status !== 'stopped'
  }

  idOf(name: string): string | undefined {
    return this.#fleet.table.idOf(name)
  }

  running(id: string): Promise<RunningSandbox> {
    return this.suspension.running(id)
  }

  /** Resolves when its patches are applied. */
  settled(id: string): Promise<void> {
    return this.#fleet.settled(id)
  }

  /** Wakes the sandbox if it is suspended; it is not idle until the use is disposed of. */
  use(id: string, why?: AwakeReason): Promise<Use> {
    return this.suspension.use(id, why)
  }

  /** Counts a use without waking the sandbox: it is not idle until the returned function is called. */
  keepAwake(id: string, why?: AwakeReason): () => void {
    return this.suspension.activity.use(id, why)
  }

  /** 0 if it is forgotten; undefined if it is not stopped. */
  stoppedAt(id: string): number | undefined {
    const record = this.#fleet.table.get(id)
    if (record && record.status !== 'stopped') return undefined
    return record?.stoppedAt ?? 0
  }

  list(query: ListSandboxesParsed): Omit<SandboxPage, 'sandboxes'> & { sandboxes: DetailView[] } {
    const { records, total, cursor } = this.#fleet.table.list(query)
    return { sandboxes: records.map((record) => this.#detail(record)), total, ...(cursor && { cursor }) }
  }

  async update(id: string, patch: UpdateSandboxParsed): Promise<SandboxView> {
    assertNotStopped(this.record(id))
    // All checks come before all changes. The name is checked again below, because others may take it meanwhile.
    this.#fleet.assertNameFree(patch.name, id)
    if (patch.resources) this.#assertLimits(patch.resources)
    const { enabled, port } = patch.network ?? {}
    if (enabled !== undefined) await switchNetwork(this.#fleet, id, enabled)
    if (patch.resources) await this.#limit(id, patch)
    const save = () => {
      const before = this.record(id)
      assertNotStopped(before)
      this.#fleet.assertNameFree(patch.name, id)
      this.#fleet.table.save(patchRecord(before, patch))
      return before.network.port
    }
    if (port === undefined) save()
    else await this.#options.setPort(id, { port }, save)
    if (patch.keepAwake !== undefined) this.suspension.activity.begin(id)
    return toSandbox(this.record(id))
  }

  /** The preview of a port was changed or removed. In the caller's transaction. */
  notePreview(id: string, port: number, preview: Pick<PreviewRecord, 'auth'> | undefined): void {
    const record = this.record(id)
    if (record.network.port !== port) return
    const { enabled } = record.network
    const kept = { port, ...(preview?.auth && { auth: preview.auth }) }
    const network = { enabled, ...(preview ? kept : { port: null }) }
    this.#fleet.table.save({ ...record, network, updatedAt: Date.now() })
  }

  #assertLimits(resources: UpdateSandboxParsed['resources']): void {
    assertSupported({ resources }, this.#fleet.engine.capabilities)
    this.#fleet.capacity.assertFits(resources)
  }

  async #limit(id: string, patch: UpdateSandboxParsed): Promise<void> {
    const { engine, storage } = this.#fleet
    const record = this.record(id)
    const machine = await this.#fleet.machineWithCell(record)
    const { resources } = patchRecord(record, patch)
    // Without a cell there is nothing to limit until the next wake.
    if (machine) await engine.limit(machine.cell, resources)
    if (patch.resources?.disk) await storage.setLimit(record.root.layer, resources.diskBytes)
  }

  setTimeouts(id: string, patch: TimeoutsParsed): SandboxView {
    const record = this.record(id)
    assertNotStopped(record)
    const timeouts = patchTimeouts(record.timeouts, patch)
    const changed = { ...record, timeouts, updatedAt: Date.now() }
    this.#fleet.db.transaction(() => {
      this.#fleet.table.save(changed)
      this.#fleet.events.add(id, 'timeout.changed', { ...timeouts })
    })
    this.suspension.activity.begin(id)
    return toSandbox(changed)
  }

  async pause(id: string): Promise<SandboxView> {
    return toSandbox(await this.suspension.pause(id))
  }

  async resume(id: string): Promise<SandboxView> {
    return toSandbox(await this.suspension.resume(id))
  }

  async hibernate(id: string): Promise<SandboxView> {
    return toSandbox(await this.suspension.hibernate(id))
  }

  async wake(id: string, options: { idleMs?: number } = {}): Promise<SandboxView> {
    return toSandbox(await this.suspension.wake(id, options))
  }

  /** Kills all its processes, removes all it holds and keeps the record as `stopped`. Deleting a stopped one changes nothing. */
  async delete(id: string): Promise<SandboxView> {
    assertMade(this.record(id))
    return this.#deleting.run(id, () => this.#fleet.inTurn(id, () => this.#remove(id)))
  }

  async #remove(id: string, options?: KillOptions): Promise<SandboxView> {
    const record = this.record(id)
    if (record.status === 'stopped' || options?.isStillMeant() === false) return toSandbox(record)
    // The record says `stopped` first: the next start sweeps what a crash leaves from here on.
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

  /** Removing a record also removes thousands of events and processes, so other work runs in between. */
  async #prune(): Promise<void> {
    for (const id of this.#fleet.table.old(KEEP_STOPPED)) {
      this.#fleet.table.remove(id)
      await setImmediate()
    }
  }

  /** Does not wake a suspended one. */
  async usage(id: string): Promise<SandboxUsage> {
    const { engine, storage } = this.#fleet
    const record = this.record(id)
    const machine = await this.#fleet.machineWithCell(record)
    const [usage, diskBytes] = await Promise.all([
      machine ? engine.usage(machine.cell) : NO_USAGE,
      storage.usageBytes(record.root.layer),
    ])
    return { ...usage, diskBytes }
  }

  /** How often the memory limit has killed something in this sandbox. */
  async oomKills(machine: Machine): Promise<number> {
    return (await this.#fleet.engine.usage(machine.cell)).oomKills
  }

  /** Updates the memory figures that a command inside is about to read. Not awaited, and a failure is ignored. */
  show({ record, machine }: RunningSandbox): void {
    const now = performance.now()
    if (now - machine.shownAt < SHOW_EVERY_MS) return
    machine.shownAt = now
    this.#fleet.engine.show?.(machine.cell, record.resources).catch(() => {})
  }

  /** Why no sandbox can be made now; undefined if one can. */
  unready(): string | undefined {
    return this.#creation.unready()
  }

  /** Starts the warm pool. */
  async keepWarm(): Promise<void> {
    this.#fleet.warm.start(await this.#creation.usualPlan())
  }

  info(): ServerInfo {
    const { capacity, disk, engine, storage, table, warm } = this.#fleet
    const { engine: name, isolation, ...capabilities } = engine.capabilities
    return {
      version: VERSION,
      engine: name,
      isolation,
      capabilities,
      machine: capacity.has,
      storage: storage.capabilities,
      disk: disk.info(),
      sandboxes: table.countLive(),
      warm: warm.info(),
      startedAt: this.#startedAt.toISOString(),
    }
  }

  /** Images that sandboxes, checkpoints and snapshots need. */
  imagesInUse(): Set<string> {
    const held = this.#fleet.table.holding().flatMap((record) => record.image ?? [])
    return new Set([...held, ...this.#options.savedStates.table.images()])
  }

  /** Ends creates. Sandboxes keep running without this server; with `all` they are stopped. */
  async close(options: { all?: boolean } = {}): Promise<void> {
    this.suspension.activity.close()
    if (options.all)
      await Promise.all(this.#fleet.table.live().map((record) => this.delete(record.id).catch(() => {})))
    this.#fleet.close()
    await this.#fleet.warm.close()
    // Deletes end, and no sandbox stays frozen for a checkpoint.
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
