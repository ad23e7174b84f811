// The sandboxes there are: creates, finds, changes and removes them, and brings them back after a restart.
import { setTimeout } from 'node:timers/promises'
import {
  type CreateSandboxParsed,
  IsletError,
  isId,
  type ListSandboxesParsed,
  newId,
  type Sandbox,
  type SandboxPage,
  type SandboxUsage,
  type ServerInfo,
  type UpdateSandboxParsed,
} from '@islet/contract'
import type { Db } from '../db/db.ts'
import { type SandboxRecord, SandboxTable } from '../db/sandboxes.ts'
import type { Engine, EngineCapabilities } from '../engine/engine.ts'
import type { Image, Images } from '../image/image.ts'
import type { Log } from '../log.ts'
import type { Storage } from '../storage/storage.ts'
import { VERSION } from '../version.ts'
import type { Control } from './control.ts'
import { Idempotency } from './idempotency.ts'
import { assertRunning, move } from './lifecycle.ts'
import {
  adoptMachine,
  asStartError,
  type Machine,
  settleMachine,
  startMachine,
  stopMachine,
} from './machine.ts'
import { newRecord, patchRecord, toSandbox } from './record.ts'
import { Slots } from './slots.ts'
import { assertSupported } from './supported.ts'

/** How soon the death of a sandbox's first process is noticed after its connection broke. */
const AWAY_POLL_MS = 100
/** After a reboot of the machine: how many sandboxes are started side by side. */
const RESTARTS_AT_ONCE = 4

/** Records of stopped sandboxes that are remembered, and how often the others are forgotten. */
const KEEP_STOPPED = 10_000
const PRUNE_EVERY = 100

export interface SandboxesOptions {
  db: Db
  engine: Engine
  storage: Storage
  images: Images
  log: Log
  maxSandboxes: number
  defaultRuntime: string
}

/** What the data services need of a running sandbox. */
export interface RunningSandbox {
  record: SandboxRecord
  machine: Machine
}

/** How a sandbox came to run: just made, found running by a new server, or started again over its files. */
export type Beginning = 'created' | 'adopted' | 'restarted'

/** Told when a sandbox becomes usable and when it is gone, so that what runs inside can be followed. */
export interface SandboxObserver {
  /** In the order of `observe`. A create answers only after all of them are done. */
  began(sandbox: RunningSandbox, how: Beginning): void | Promise<void>
  gone(sandboxId: string, options: { removed: boolean }): Promise<void>
}

export class Sandboxes implements Control {
  readonly #options: SandboxesOptions
  readonly #table: SandboxTable
  readonly #idempotency: Idempotency
  readonly #machines = new Map<string, Promise<Machine>>()
  readonly #deleting = new Map<string, Promise<Sandbox>>()
  readonly #failing = new Map<string, Promise<void>>()
  readonly #observers: SandboxObserver[] = []
  readonly #startedAt = new Date()
  #stops = 0
  #closed = false

  constructor(options: SandboxesOptions) {
    this.#options = options
    this.#table = new SandboxTable(options.db)
    this.#idempotency = new Idempotency(options.db)
  }

  observe(observer: SandboxObserver): void {
    this.#observers.push(observer)
  }

  /** Adopts what still runs, restarts what the machine's reboot ended, and sweeps what a crash left half made. */
  async start(): Promise<void> {
    const { engine, storage, log } = this.#options
    const records = this.#table.live().filter((record) => record.status !== 'creating')
    for (const record of this.#table.live()) if (record.status === 'creating') this.#table.remove(record.id)
    this.#table.prune(KEEP_STOPPED)
    const alive = await engine.start(records.map((record) => record.shell))
    const layers = new Set(this.#table.holding().map((record) => record.root.layer))
    for (const layer of await storage.list()) if (!layers.has(layer)) await storage.delete(layer)
    const slots = new Slots(RESTARTS_AT_ONCE)
    for (const record of records) {
      const adopts = alive.has(record.shell)
      const machine = adopts ? adoptMachine(this.#options, record) : slots.run(() => this.#restart(record))
      this.#machines.set(record.id, machine)
      machine.then(
        (started) => {
          log.info({ sandbox: record.id, adopted: adopts }, 'sandbox brought back')
          this.#follow(record.id, started)
          const how = adopts ? 'adopted' : 'restarted'
          void this.#tellBegan({ record: this.record(record.id), machine: started }, how)
        },
        (error) => this.#fail(record.id, `It could not be brought back: ${error.message}`),
      )
    }
  }

  async create(
    input: CreateSandboxParsed,
    options: { idempotencyKey?: string; signal?: AbortSignal } = {},
  ): Promise<Sandbox> {
    const { idempotencyKey } = options
    if (!idempotencyKey) return this.#create(input, options)
    // A client that went away may come back with its key, so only a create without one is undone then.
    return this.#idempotency.once(
      idempotencyKey,
      input,
      (commit) => this.#create(input, { commit }),
      (id) => this.get(id),
    )
  }

  async #create(
    input: CreateSandboxParsed,
    options: { commit?: (id: string) => void; signal?: AbortSignal },
  ): Promise<Sandbox> {
    if (this.#closed) throw new IsletError('draining')
    if (this.#isFull()) {
      throw new IsletError('too_many_requests', `${this.unready()}`, {
        hint: 'Delete some, or raise ISLET_MAX_SANDBOXES.',
      })
    }
    assertSupported(input, this.#options.engine.capabilities)
    let record = newRecord(input, await this.#base(input))
    this.#table.save(record)
    const machine = startMachine(this.#options, record, { newLayer: true })
    this.#machines.set(record.id, machine)
    try {
      const started = await machine
      const workdir = await settleMachine(started, record, input)
      await this.#tellBegan({ record: { ...record, workdir }, machine: started }, 'created')
      options.signal?.throwIfAborted()
      record = move({ ...record, workdir }, 'start')
      this.#options.db.transaction(() => {
        this.#table.save(record)
        options.commit?.(record.id)
      })
      this.#follow(record.id, started)
      return toSandbox(record)
    } catch (error) {
      await this.#undo(record, machine)
      throw options.signal?.aborted ? options.signal.reason : asStartError(error)
    }
  }

  async #base(
    input: CreateSandboxParsed,
  ): Promise<{ runtime: string; image?: Image; capabilities: EngineCapabilities }> {
    const { engine, images, defaultRuntime } = this.#options
    const runtime = input.runtime ?? defaultRuntime
    const { capabilities } = engine
    // An engine without a wall runs on the machine's own files: there is no other image for it.
    if (capabilities.wall !== true) return { runtime: 'host', capabilities }
    return { runtime, image: await images.resolve(runtime), capabilities }
  }

  async #undo(record: SandboxRecord, machine: Promise<Machine>): Promise<void> {
    const started = await machine.catch(() => undefined)
    this.#machines.delete(record.id)
    if (started) {
      for (const observer of this.#observers) await observer.gone(record.id, { removed: true })
      await stopMachine(this.#options, started)
      await this.#options.storage.delete(record.root.layer)
    }
    this.#table.remove(record.id)
  }

  get(id: string): Sandbox {
    return toSandbox(this.record(id))
  }

  record(id: string): SandboxRecord {
    const record = isId('sandbox', id) ? this.#table.get(id) : undefined
    if (!record) throw new IsletError('sandbox_not_found', `There is no sandbox ${id.slice(0, 64)}.`)
    return record
  }

  list(query: ListSandboxesParsed): SandboxPage {
    const { records, total, cursor } = this.#table.list(query)
    return { sandboxes: records.map(toSandbox), total, ...(cursor && { cursor }) }
  }

  async update(id: string, patch: UpdateSandboxParsed): Promise<Sandbox> {
    if (patch.resources) await this.#limit(id, patch)
    const record = patchRecord(this.record(id), patch)
    this.#table.save(record)
    return toSandbox(record)
  }

  async #limit(id: string, patch: UpdateSandboxParsed): Promise<void> {
    assertSupported({ resources: patch.resources }, this.#options.engine.capabilities)
    const { record, machine } = await this.running(id)
    const { resources } = patchRecord(record, patch)
    await this.#options.engine.limit(machine.shell, resources)
    if (patch.resources?.disk) await this.#options.storage.setLimit(record.root.layer, resources.diskBytes)
  }

  delete(id: string): Promise<Sandbox> {
    const record = this.record(id)
    if (record.status === 'stopped') return this.#deleting.get(id) ?? Promise.resolve(toSandbox(record))
    if (record.status === 'creating') {
      return Promise.reject(new IsletError('invalid_state', `Sandbox ${id} is still being made.`))
    }
    // The record says stopped first: whatever a crash leaves from here on is swept at the next start.
    const stopped = move(record, 'stop')
    this.#table.save(stopped)
    const work = this.#remove(stopped).finally(() => this.#deleting.delete(id))
    this.#deleting.set(id, work)
    return work
  }

  async #remove(record: SandboxRecord): Promise<Sandbox> {
    await this.#failing.get(record.id)
    await this.#letGo(record.id)
    for (const observer of this.#observers) await observer.gone(record.id, { removed: true })
    await this.#options.storage.delete(record.root.layer)
    if (++this.#stops % PRUNE_EVERY === 0) this.#table.prune(KEEP_STOPPED)
    return toSandbox(record)
  }

  async usage(id: string): Promise<SandboxUsage> {
    const { record, machine } = await this.running(id)
    const [usage, diskBytes] = await Promise.all([
      this.#options.engine.usage(machine.shell),
      this.#options.storage.usageBytes(record.root.layer),
    ])
    return { ...usage, diskBytes }
  }

  /** How often the memory limit has killed something in this sandbox. */
  async oomKills(machine: Machine): Promise<number> {
    return (await this.#options.engine.usage(machine.shell)).oomKills
  }

  async running(id: string): Promise<RunningSandbox> {
    const record = this.record(id)
    assertRunning(record)
    const machine = await this.#machines.get(id)
    if (!machine) throw new IsletError('sandbox_lost', `Sandbox ${id} is gone.`)
    return { record, machine }
  }

  unready(): string | undefined {
    if (this.#closed) return 'The server is shutting down.'
    if (this.#isFull()) return `This server runs at most ${this.#options.maxSandboxes} sandboxes.`
  }

  #isFull(): boolean {
    return this.#table.countLive() >= this.#options.maxSandboxes
  }

  info(): ServerInfo {
    const { engine, storage } = this.#options
    const { engine: name, isolation, ...capabilities } = engine.capabilities
    return {
      version: VERSION,
      engine: name,
      isolation,
      capabilities,
      storage: storage.capabilities,
      sandboxes: this.#table.countLive(),
      startedAt: this.#startedAt.toISOString(),
    }
  }

  /** Images that sandboxes stand on. */
  imagesInUse(): Set<string> {
    return new Set(this.#table.holding().flatMap((record) => record.image ?? []))
  }

  /** No more creates; the sandboxes go on without this server, or with `all` are stopped too. */
  async close(options: { all?: boolean } = {}): Promise<void> {
    this.#closed = true
    if (options.all)
      await Promise.all(this.#table.live().map((record) => this.delete(record.id).catch(() => {})))
    await Promise.all(this.#deleting.values())
    await Promise.all(
      [...this.#machines.values()].map((machine) =>
        machine.then(
          ({ guest }) => guest.close(),
          () => {},
        ),
      ),
    )
  }

  /** A new shell over the layer that is there: files are kept, processes are not. */
  async #restart(record: SandboxRecord): Promise<Machine> {
    const again = { ...record, shell: newId('shell'), updatedAt: Date.now() }
    this.#table.save(again)
    return startMachine(this.#options, again, { newLayer: false })
  }

  async #tellBegan(sandbox: RunningSandbox, how: Beginning): Promise<void> {
    // Each is called before any is waited for: later ones may rely on what earlier ones have begun.
    const done = this.#observers.map((observer) => observer.began(sandbox, how))
    await Promise.all(done)
  }

  #follow(id: string, machine: Machine): void {
    machine.guest.events.on('disconnect', () => void this.#watchAway(id, machine))
    machine.guest.events.once('lost', ({ reason }) => void this.#fail(id, reason))
    if (!machine.guest.connected) void this.#watchAway(id, machine)
  }

  /** A guest that is away redials, unless it is dead. */
  async #watchAway(id: string, machine: Machine): Promise<void> {
    while (!this.#closed && !machine.guest.connected && this.#machines.has(id)) {
      if (!(await this.#options.engine.alive(machine.shell).catch(() => true))) {
        return this.#fail(id, 'Its first process ended.')
      }
      await setTimeout(AWAY_POLL_MS, undefined, { ref: false })
    }
  }

  async #fail(id: string, reason: string): Promise<void> {
    const record = this.#table.get(id)
    if (this.#closed || !record || record.status === 'stopped' || record.status === 'failed') return
    this.#options.log.warn({ sandbox: id, reason }, 'sandbox failed')
    this.#table.save(move(record, 'fail', reason))
    const work = this.#letGo(id)
      .catch((error) => this.#options.log.error({ error, sandbox: id }, 'not stopped'))
      .finally(() => this.#failing.delete(id))
    this.#failing.set(id, work)
    await work
    for (const observer of this.#observers) await observer.gone(id, { removed: false })
  }

  async #letGo(id: string): Promise<void> {
    const machine = await this.#machines.get(id)?.catch(() => undefined)
    this.#machines.delete(id)
    if (machine) await stopMachine(this.#options, machine)
  }
}
