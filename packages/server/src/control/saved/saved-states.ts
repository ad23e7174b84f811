// Saved states: files, env, store, services and, if the engine can, memory of one instant. Checkpoints and snapshots refer to
// one; a fork makes one for its own duration.
//
//   a row `making` that holds its layer  →  freeze, clone, copy rows, thaw  →  `ready`, in the transaction that names it
//
// The next start removes saved states that a crash left `making` or unnamed, with their layers and memory.
import { setImmediate } from 'node:timers/promises'
import { IsletError, newId } from '@islet/contract'
import { PatchTable } from '../../db/patches.ts'
import type { SandboxRecord } from '../../db/sandboxes.ts'
import { SAVED_FIELDS, type SavedRecord, type SavedSandbox, SavedTable } from '../../db/saved-states.ts'
import { ServiceTable } from '../../db/services.ts'
import { Limiter } from '../../lib/limiter.ts'
import { pick } from '../../lib/pick.ts'
import { Shared } from '../../lib/shared.ts'
import { asStorageError } from '../errors.ts'
import type { Fleet } from '../fleet.ts'
import type { Machine } from '../machine.ts'
import { Memory, type MemoryOptions, reconnect } from './memory.ts'
import { flattened, movedPath, stackOf } from './roots.ts'

/** A saved state with this many stacked layers is merged into one: each layer slows down lookups of files. */
const MAX_STACK = 16
/** Keys of a store that are removed in one turn of the event loop. */
const REMOVE_KEYS = 500

interface SaveOptions {
  name?: (saved: SavedRecord) => void
  /** A sandbox with this limit will take over the layer. */
  takenOver?: { limitBytes: number }
}

interface SavedUse extends AsyncDisposable {
  saved: SavedRecord
}

export class SavedStates {
  readonly table: SavedTable
  readonly memory: Memory
  readonly #fleet: Fleet
  readonly #services: ServiceTable
  readonly #patches: PatchTable
  readonly #flattening = new Shared<SavedRecord>()
  readonly #measuring = new Limiter(1)
  /** Number of uses. */
  readonly #used = new Map<string, number>()

  constructor(fleet: Fleet, memory: MemoryOptions) {
    this.#fleet = fleet
    this.memory = new Memory(fleet, memory)
    this.table = new SavedTable(fleet.db)
    this.#services = new ServiceTable(fleet.db)
    this.#patches = new PatchTable(fleet.db)
  }

  /** Removes what a crash left. Call it before layers are swept. */
  async start(): Promise<void> {
    for (const id of this.table.unnamed()) this.table.remove(id)
    const kept = new Set(this.#fleet.table.holding().flatMap(({ memory }) => memory ?? []))
    for (const { id, memory } of this.table.all()) if (memory) kept.add(id)
    await this.memory.start(kept)
  }

  /** Call it in the turn of the sandbox. `name` writes the checkpoint or snapshot; without `name`, `discard` it later. */
  async save(record: SandboxRecord, { name, takenOver }: SaveOptions): Promise<SavedRecord> {
    const { db, disk, storage } = this.#fleet
    disk.assertRoom()
    if (this.table.hasStore(record.id)) disk.assertStoreRoom()
    const layer = newId('layer')
    const machine = await this.#fleet.machine(record.id)
    const can = this.#fleet.engine.capabilities.memoryCheckpoint === true
    const wantsMemory = can && (record.memory !== null || machine !== undefined)
    const making: SavedRecord = {
      id: newId('saved'),
      sandboxId: record.id,
      status: 'making',
      state: this.#stateOf(record, layer),
      services: [],
      patchRuns: [],
      memory: wantsMemory,
      frozenMs: 0,
      sizeBytes: null,
      createdAt: Date.now(),
    }
    this.begin(making)
    try {
      const rows: Partial<SavedRecord> = {}
      let isDurable = false
      let memory = false
      const frozenMs = await this.#frozen(record, machine, wantsMemory, async () => {
        // Before the files: saving memory may have to thaw the sandbox for a moment.
        memory = wantsMemory && (await this.#saveMemory(record, machine, making.id))
        isDurable = (await storage.clone(record.root.layer, layer, takenOver ?? { readOnly: true })).durable
        Object.assign(rows, this.#copyRows(making, record.id))
      })
      // An unnamed one does not survive a power cut anyway.
      if (name && !isDurable) await storage.sync()
      if (name && memory) await this.memory.sync()
      const saved: SavedRecord = { ...making, ...rows, memory, status: 'ready', frozenMs }
      db.transaction(() => {
        this.table.save(saved)
        name?.(saved)
      })
      if (name) await db.sync()
      return saved
    } catch (error) {
      if (!this.table.isNamed(making.id)) await this.#remove(making.id)
      throw asStorageError(error)
    }
  }

  /** For an import: holds its layer until `finish` or `discard`. After a crash nothing of it is left. */
  begin(making: SavedRecord): void {
    const { db, layers } = this.#fleet
    db.transaction(() => {
      this.table.save(making)
      layers.hold(making.id, making.state.root)
    })
  }

  async finish(saved: SavedRecord, name: (saved: SavedRecord) => void): Promise<void> {
    const { db, storage } = this.#fleet
    await storage.sync()
    db.transaction(() => {
      this.table.save({ ...saved, status: 'ready' })
      name(saved)
    })
    await db.sync()
  }

  /** In the background, one at a time, because it walks over every file. */
  measure({ id, state }: SavedRecord): void {
    const { layer } = state.root
    this.#measuring
      .run(async () => {
        if (this.#fleet.closed || !this.table.isNamed(id)) return
        const bytes = await this.#fleet.storage.usageBytes(layer)
        if (!this.#fleet.closed) this.table.setSize(id, bytes)
      })
      .catch((error) => this.#fleet.log.debug({ error, saved: id }, 'a saved state was not measured'))
  }

  /** It is not removed before the use is disposed of, and has few enough layers to stand on. */
  async use({ id }: SavedRecord): Promise<SavedUse> {
    const found = this.table.get(id)
    if (found?.status !== 'ready')
      throw new IsletError('conflict', 'The checkpoint, snapshot or fork source has been deleted meanwhile.')
    this.#used.set(id, (this.#used.get(id) ?? 0) + 1)
    const end = async () => {
      const left = this.#used.get(id)! - 1
      if (left > 0) this.#used.set(id, left)
      else this.#used.delete(id)
      // The user does not wait until a large layer is removed.
      await this.discard(id, { later: true })
    }
    try {
      const saved = await this.#flat(found)
      await this.#assertWhole(saved)
      return { saved, [Symbol.asyncDispose]: end }
    } catch (error) {
      await end()
      throw error
    }
  }

  /** Removes it, unless a checkpoint or snapshot names it or it is in use: then the end of the last use removes it. */
  async discard(id: string, options: { later?: boolean } = {}): Promise<void> {
    if (this.#used.has(id) || this.table.isNamed(id)) return
    await this.#remove(id, options)
  }

  /** The saved memory to start a copy with, if the engine can. */
  memoryOf(saved: SavedRecord): string | undefined {
    const can = this.#fleet.engine.capabilities.memoryCheckpoint === true
    return saved.memory && can ? this.memory.path(saved.id) : undefined
  }

  /** Replaces store, services and patch runs of a sandbox by the saved ones. In the caller's transaction. */
  giveRows(saved: SavedRecord, record: SandboxRecord): void {
    const now = Date.now()
    const { storage } = this.#fleet
    this.table.copyStoreTo(saved.id, record.id, now)
    for (const { name } of this.#services.list(record.id)) this.#services.remove(record.id, name)
    for (const { name, spec, state } of saved.services) {
      const path = movedPath(state.path, saved.state.root.layer, record.root.layer, storage)
      const leftover = state.status === 'installing' ? state.installId : state.processId
      const none = { installId: null, processId: null, pid: null, port: null, url: null }
      const copied = { ...state, path, leftover, ...none }
      this.#services.save({ sandboxId: record.id, name, spec, state: copied, createdAt: now, updatedAt: now })
    }
    // A patch that was running then does not run here.
    const runs = saved.patchRuns.map((run) => (run.status === 'running' ? { ...run, processId: null } : run))
    this.#patches.setRuns(record.id, runs)
  }

  /** The saved fields of a record, with `layer` as its layer. */
  #stateOf(record: SandboxRecord, layer: string): SavedSandbox {
    const workdir = movedPath(record.workdir, record.root.layer, layer, this.#fleet.storage)
    return { ...pick(record, SAVED_FIELDS), workdir, root: { ...record.root, layer } }
  }

  #copyRows(saved: SavedRecord, id: string): Pick<SavedRecord, 'state' | 'services' | 'patchRuns'> {
    const { layer } = saved.state.root
    const record = this.#fleet.record(id)
    const { root } = record
    this.table.copyStoreFrom(saved.id, id, Date.now())
    return {
      state: this.#stateOf(record, layer),
      services: this.#services.list(id).map(({ name, spec, state }) => {
        return {
          name,
          spec,
          state: { ...state, path: movedPath(state.path, root.layer, layer, this.#fleet.storage) },
        }
      }),
      patchRuns: this.#patches.runs(id),
    }
  }

  /** Runs the work while the sandbox is frozen. Returns for how long, in milliseconds. */
  async #frozen(
    record: SandboxRecord,
    machine: Machine | undefined,
    memory: boolean,
    work: () => Promise<void>,
  ): Promise<number> {
    const { engine, storage } = this.#fleet
    const isRunning = record.status === 'running'
    if (
      !machine ||
      engine.capabilities.freeze !== true ||
      (!isRunning && !memory) ||
      record.memory !== null
    ) {
      await work()
      return 0
    }
    // A btrfs snapshot waits until dirty data is on disk. Syncing before the freeze makes the freeze shorter.
    if (storage.capabilities.clone === 'btrfs') await storage.sync()
    // A frozen guest cannot close its connection.
    if (memory && !isRunning) await engine.thaw(machine.cell)
    const connect = memory ? await this.#disconnect(record.id, machine) : undefined
    const began = performance.now()
    try {
      await engine.freeze(machine.cell)
      await work()
    } finally {
      try {
        if (isRunning) await engine.thaw(machine.cell)
      } finally {
        await connect?.()
      }
    }
    return performance.now() - began
  }

  /** Memory can be saved only without connections to this server. Call the returned function to reconnect. */
  async #disconnect(id: string, machine: Machine): Promise<() => Promise<void>> {
    const admit = await this.#fleet.disconnect(id)
    await machine.guest.suspend()
    return async () => {
      await reconnect(this.#fleet, machine)
      admit()
    }
  }

  /** False: memory could not be saved; the rest is saved all the same. */
  #saveMemory({ memory }: SandboxRecord, machine: Machine | undefined, id: string): Promise<boolean> {
    return memory === null ? this.memory.save(machine!, id) : this.memory.copy(memory, id)
  }

  /** Merges a deep stack of layers into one. Concurrent users share the merge. */
  async #flat(saved: SavedRecord): Promise<SavedRecord> {
    const { stacks } = this.#fleet.storage.capabilities
    if (!stacks || stackOf(saved.state.root).length < MAX_STACK) return saved
    return this.#flattening.run(saved.id, () => this.#flatten(saved))
  }

  async #flatten(saved: SavedRecord): Promise<SavedRecord> {
    const { db, layers, storage } = this.#fleet
    const root = flattened(saved.state.root, newId('layer'))
    layers.hold(saved.id, root)
    try {
      await this.#assertWhole(saved)
      await storage.flatten(stackOf(saved.state.root), root.layer)
      const flat = { ...(this.table.get(saved.id) ?? saved), state: { ...saved.state, root } }
      const unheld = db.transaction(() => {
        this.table.save(flat)
        return layers.holdOnly(saved.id, root)
      })
      await this.#fleet.dropLayers(unheld)
      return flat
    } catch (error) {
      await this.#fleet.dropLayers(layers.holdOnly(saved.id, saved.state.root))
      throw asStorageError(error)
    }
  }

  /** Checked before anything is ended or made: its layers may have been deleted from the disk by hand. */
  async #assertWhole({ state, sandboxId }: SavedRecord): Promise<void> {
    const { storage } = this.#fleet
    for (const layer of stackOf(state.root)) {
      if (await storage.has(layer)) continue
      throw new IsletError('state_damaged', undefined, { details: { layer, sandboxId } })
    }
  }

  async #remove(id: string, { later = false } = {}): Promise<void> {
    const { db, layers } = this.#fleet
    this.table.doom(id)
    while (this.table.removeSome(id, REMOVE_KEYS) === REMOVE_KEYS) await setImmediate()
    const unheld = db.transaction(() => {
      this.table.remove(id)
      return layers.holdOnly(id, undefined)
    })
    if (later) this.#fleet.dropLater(unheld)
    else await this.#fleet.dropLayers(unheld)
    await this.memory.remove(id)
  }
}

/** Call it in the turn of the sandbox. The files of a failed one change until its last process is gone. */
export async function savable(fleet: Fleet, id: string): Promise<SandboxRecord> {
  assertSavable(fleet.record(id))
  await fleet.settleFailure(id)
  return fleet.record(id)
}

export function assertSavable({ id, status }: SandboxRecord): void {
  if (status !== 'creating' && status !== 'stopped') return
  throw new IsletError('invalid_state', `Sandbox ${id} is ${status}: there is nothing to save.`, {
    details: { status, wanted: 'running' },
  })
}
