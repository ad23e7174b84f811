// Pause, hibernate, resume and wake, and the automatic wake when a sandbox is used.
import { type AwakeReason, IsletError, newId } from '@islet/contract'
import type { SandboxRecord } from '../db/sandboxes.ts'
import { Shared } from '../lib/shared.ts'
import { Activity } from './activity.ts'
import { asStartError } from './errors.ts'
import type { Beginning, Fleet, MoveOptions, RunningSandbox } from './fleet.ts'
import { assertMove, isPausedForDisk, isSuspended } from './lifecycle.ts'
import { goesOn, type Machine, startMachine } from './machine.ts'
import { settleNetwork } from './network.ts'
import { type Memory, reconnect } from './saved/memory.ts'
import { CellClaim, stopCell } from './warm/cells.ts'

interface SuspensionOptions {
  fleet: Fleet
  /** Holds the memory of hibernated sandboxes. */
  memory: Memory
  /** Stops it for good, if `isStillMeant` when its turn has come. */
  kill(id: string, options: KillOptions): Promise<unknown>
}

export interface KillOptions extends Pick<MoveOptions, 'reason' | 'also'> {
  isStillMeant(): boolean
}

interface HibernateOptions extends Pick<MoveOptions, 'also'> {
  /** Only if it is still idle when its turn has come. */
  onlyIdle?: boolean
}

/** A use of a running sandbox. Dispose of it at the end of the use. */
export interface Use extends Disposable {
  /** The sandbox was suspended and was woken for this. */
  autoResumed: boolean
}

/** It runs; `begun` resolves when all observers have been told. */
interface Roused {
  begun: Promise<void>
}

export class Suspension {
  readonly activity: Activity
  readonly #options: SuspensionOptions
  readonly #fleet: Fleet
  /** Automatic wakes. */
  readonly #waking = new Shared<Roused | undefined>()

  constructor(options: SuspensionOptions) {
    this.#options = options
    this.#fleet = options.fleet
    this.activity = new Activity({
      db: options.fleet.db,
      record: (id) => options.fleet.table.get(id),
      onIdle: (id) => this.#inBackground(id, () => this.#idle(id)),
      onPausedTooLong: (id) => this.#inBackground(id, () => this.#pausedTooLong(id)),
    })
  }

  /** Wakes the sandbox if it is suspended; it is not idle until the use is disposed of. A stopped one is left as it is. */
  async use(id: string, why?: AwakeReason): Promise<Use> {
    if (this.#fleet.record(id).status === 'stopped') return { autoResumed: false, [Symbol.dispose]() {} }
    const leave = this.activity.use(id, why)
    try {
      const autoResumed = await this.#awake(id)
      await this.#fleet.settled(id)
      return { autoResumed, [Symbol.dispose]: leave }
    } catch (error) {
      leave()
      throw error
    }
  }

  /** A client that was using it when it was suspended waits until it is resumed, as the processes inside do. */
  async running(id: string): Promise<RunningSandbox> {
    while (isSuspended(this.#fleet.record(id)) && this.activity.isUsed(id) && !this.#fleet.closed)
      await this.#fleet.nextMove(id)
    return this.#fleet.running(id)
  }

  // A verb that leads to the present state changes nothing and is not an error.

  pause(id: string, options?: MoveOptions): Promise<SandboxRecord> {
    return this.#fleet.inTurn(id, async () => {
      const record = this.#fleet.record(id)
      if (record.status === 'paused') return record
      assertMove(record, 'pause')
      const { freeze } = this.#fleet.engine.capabilities
      if (freeze !== true)
        throw new IsletError('not_supported', freeze.missing, { hint: 'Hibernate it: its files are kept.' })
      return this.#unsteadily(id, async () => {
        await this.#freeze(id)
        return this.#moved(id, 'pause', options)
      })
    })
  }

  async resume(id: string, options?: MoveOptions): Promise<SandboxRecord> {
    const roused = await this.#fleet.inTurn(id, async () => {
      const record = this.#fleet.record(id)
      if (record.status === 'running') return this.#stayAwake(record)
      assertMove(record, 'resume')
      return this.#rouse(record, 'resume', options)
    })
    await roused?.begun
    return this.#fleet.record(id)
  }

  async hibernate(id: string, options: HibernateOptions = {}): Promise<SandboxRecord> {
    const record = await this.#fleet.inTurn(id, async () => {
      const record = this.#fleet.record(id)
      if (options.onlyIdle && (record.status !== 'running' || !this.activity.isIdle(record))) return record
      if (record.status === 'hibernated') return record
      assertMove(record, 'hibernate')
      return this.#unsteadily(id, () => this.#hibernate(id, { also: options.also }))
    })
    const isFrozen = record.status === 'hibernated' && record.memory === null
    const machine = isFrozen ? await this.#fleet.machine(id) : undefined
    // After the record says `hibernated`: giving memory back takes a while, and nothing depends on it.
    if (machine?.suspended)
      await this.#fleet.engine
        .reclaim(machine.cell)
        .catch((error) =>
          this.#fleet.log.debug({ error, sandbox: id }, 'memory of a hibernated sandbox not given back'),
        )
    return record
  }

  async wake(id: string, options: { idleMs?: number } = {}): Promise<SandboxRecord> {
    const roused = await this.#fleet.inTurn(id, async () => {
      const record = this.#fleet.record(id)
      const { idleMs } = options
      if (record.status === 'running') return this.#stayAwake(record, idleMs)
      assertMove(record, 'wake')
      if (idleMs === undefined) return this.#rouse(record, 'wake')
      return this.#rouse(record, 'wake', {
        change: ({ timeouts }) => ({ timeouts: { ...timeouts, idleMs } }),
        also: () => this.#fleet.events.add(id, 'timeout.changed', { ...this.#fleet.record(id).timeouts }),
      })
    })
    await roused?.begun
    return this.#fleet.record(id)
  }

  /** For a sandbox that an earlier server suspended; it stays suspended. */
  async adopt(machine: Machine): Promise<void> {
    machine.suspended = true
    await this.#fleet.engine.freeze(machine.cell)
  }

  async forgetMemory({ memory }: SandboxRecord): Promise<void> {
    if (memory !== null) await this.#options.memory.remove(memory)
  }

  /** Waking a running sandbox restarts its idle time. */
  #stayAwake(record: SandboxRecord, idleMs = record.timeouts.idleMs): undefined {
    if (idleMs !== record.timeouts.idleMs) {
      const timeouts = { ...record.timeouts, idleMs }
      this.#fleet.db.transaction(() => {
        this.#fleet.table.save({ ...record, timeouts, updatedAt: Date.now() })
        this.#fleet.events.add(record.id, 'timeout.changed', { ...timeouts })
      })
    }
    this.activity.begin(record.id)
  }

  /** Concurrent callers share one wake. */
  async #awake(id: string): Promise<boolean> {
    const isRunning = this.#fleet.record(id).status === 'running' && !this.#fleet.unsteady.has(id)
    if (isRunning && !this.#waking.isRunning(id)) return false
    const roused = await this.#waking.run(id, () => this.#wakeUsed(id))
    // Outside the shared run: if it is suspended again before all observers are told, the next caller wakes it again.
    await roused?.begun
    return roused !== undefined
  }

  #wakeUsed(id: string): Promise<Roused | undefined> {
    return this.#fleet.inTurn(id, async () => {
      const record = this.#fleet.record(id)
      // It runs by now, or is gone: then the call itself says so.
      if (!isSuspended(record)) return undefined
      const verb = record.status === 'paused' ? 'resume' : 'wake'
      return this.#rouse(record, verb, { data: { auto: true } })
    })
  }

  /** Uses wait meanwhile. */
  async #unsteadily<T>(id: string, work: () => Promise<T>): Promise<T> {
    this.#fleet.unsteady.add(id)
    try {
      return await work()
    } finally {
      this.#fleet.unsteady.delete(id)
    }
  }

  async #freeze(id: string): Promise<void> {
    const { machine } = await this.#fleet.running(id)
    machine.suspended = true
    try {
      await this.#fleet.tellSuspended(id, { kept: true })
      await this.#fleet.engine.freeze(machine.cell)
    } catch (error) {
      await this.#goOn(id, machine)
      throw error
    }
  }

  /** Undoes a suspension that failed. */
  async #goOn(id: string, machine: Machine): Promise<void> {
    machine.suspended = false
    await this.#fleet.engine.thaw(machine.cell).catch(() => {})
    this.#fleet.watch(id, machine)
    await this.#fleet.tellBegan({ record: this.#fleet.record(id), machine }, 'resumed')
  }

  async #hibernate(id: string, options: MoveOptions): Promise<SandboxRecord> {
    const { capabilities } = this.#fleet.engine
    if (capabilities.memoryCheckpoint === true) return this.#toDisk(id, options)
    if (capabilities.freeze === true) {
      await this.#freeze(id)
      return this.#moved(id, 'hibernate', options)
    }
    // Only its files are kept, so the record can change first.
    const moved = this.#moved(id, 'hibernate', options)
    await this.#fleet.tellSuspended(id, { kept: false })
    await this.#fleet.letGo(id)
    return moved
  }

  /** Saves its memory to disk and destroys its cell. The link object stays: requests that wait for the guest keep waiting. */
  async #toDisk(id: string, options: MoveOptions): Promise<SandboxRecord> {
    const { engine } = this.#fleet
    const { machine } = await this.#fleet.running(id)
    machine.suspended = true
    try {
      await this.#fleet.tellSuspended(id, { kept: true })
      await machine.guest.suspend()
      await engine.freeze(machine.cell)
    } catch (error) {
      await reconnect(this.#fleet, machine)
      await this.#goOn(id, machine)
      throw error
    }
    const name = newId('saved')
    const memory = (await this.#options.memory.save(machine, name)) ? name : null
    // Memory that cannot be saved stays in the frozen cell.
    if (memory === null) await reconnect(this.#fleet, machine)
    const moved = this.#moved(id, 'hibernate', { ...options, change: { memory } })
    if (memory !== null) await engine.destroy(machine.cell)
    return moved
  }

  /** Back to running, from the frozen cell, from its memory on disk, or from its files. */
  async #rouse(record: SandboxRecord, verb: 'resume' | 'wake', options: MoveOptions = {}): Promise<Roused> {
    if (this.#fleet.closed) throw new IsletError('draining')
    if (isPausedForDisk(record)) this.#fleet.disk.assertRoom()
    try {
      return await this.#unsteadily(record.id, () => this.#back(record, verb, options))
    } catch (error) {
      throw asStartError(error)
    }
  }

  async #back(record: SandboxRecord, verb: 'resume' | 'wake', options: MoveOptions): Promise<Roused> {
    const machine = await this.#fleet.machine(record.id)
    if (record.memory !== null) {
      const woken = await this.#fromMemory(record, machine, verb, options)
      if (woken) return woken
    } else if (machine && (await this.#thaw(machine))) {
      machine.suspended = false
      this.#fleet.watch(record.id, machine)
      await settleNetwork(this.#fleet, record.id, machine)
      return this.#begun(
        this.#moved(record.id, verb, options),
        machine,
        machine.hasBegun ? 'resumed' : 'adopted',
      )
    }
    return this.#fromFiles(record, verb, options)
  }

  /** False: its processes are gone. */
  async #thaw(machine: Machine): Promise<boolean> {
    const { engine } = this.#fleet
    if (!(await engine.alive(machine.cell).catch(() => false))) return false
    await engine.thaw(machine.cell)
    return goesOn(this.#fleet, machine)
  }

  /** Undefined: its memory cannot be restored. */
  async #fromMemory(
    record: SandboxRecord,
    machine: Machine | undefined,
    verb: 'resume' | 'wake',
    options: MoveOptions,
  ): Promise<Roused | undefined> {
    const memory = this.#options.memory.path(record.memory!)
    const again = { ...this.#fleet.record(record.id), cell: newId('cell') }
    // Saved first: if that fails, link and memory are unchanged.
    this.#fleet.table.save(again)
    await using claim = new CellClaim(this.#fleet, { id: again.cell, link: machine?.guest })
    let started: Machine
    try {
      started = await startMachine(this.#fleet, again, claim, { memory })
    } catch (error) {
      // During shutdown the memory is not at fault: the next server restores it.
      if (this.#fleet.closed) throw new IsletError('draining', undefined, { cause: error })
      this.#fleet.log.error(
        { error, sandbox: record.id },
        'memory not restored; starting over from the files',
      )
      return undefined
    }
    // The machine object that others hold continues with the new cell.
    const current = machine ?? started
    Object.assign(current, { cell: started.cell, bound: started.bound, suspended: false })
    if (!machine) {
      this.#fleet.machines.set(record.id, Promise.resolve(current))
      this.#fleet.follow(record.id, current)
    }
    const moved = this.#moved(record.id, verb, withoutMemory(options))
    await this.forgetMemory(record)
    return this.#begun(moved, current, machine?.hasBegun ? 'resumed' : 'adopted')
  }

  async #fromFiles(record: SandboxRecord, verb: 'resume' | 'wake', options: MoveOptions): Promise<Roused> {
    const lost = await this.#fleet.machine(record.id)
    if (lost) {
      await this.#fleet.tellSuspended(record.id, { kept: false })
      this.#fleet.machines.delete(record.id)
      await stopCell(this.#fleet, lost)
    }
    const started = await this.#fleet.startOver(record.id)
    this.#fleet.follow(record.id, started)
    const data = { ...options.data, memory: false }
    const moved = this.#moved(record.id, verb, withoutMemory({ ...options, data }))
    await this.forgetMemory(record)
    return this.#begun(moved, started, 'restarted')
  }

  #begun(record: SandboxRecord, machine: Machine, how: Beginning): Roused {
    const leave = this.activity.use(record.id)
    const begun = this.#fleet.tellBegan({ record, machine }, how).finally(leave)
    // Awaited after the turn, so that the sandbox can be stopped meanwhile.
    begun.catch(() => {})
    return { begun }
  }

  #moved(id: string, verb: 'pause' | 'resume' | 'hibernate' | 'wake', options?: MoveOptions) {
    const moved = this.#fleet.move(id, verb, options)
    this.activity.begin(id)
    return moved
  }

  /** Whether it is still idle is checked in its turn. The `idle-timeout` event is written in the transaction of the move. */
  async #idle(id: string): Promise<void> {
    const { idleMs, onIdle } = this.#fleet.record(id).timeouts
    const also = () => this.#fleet.events.add(id, 'idle-timeout', { idleMs, action: onIdle })
    if (onIdle === 'hibernate') return void (await this.hibernate(id, { onlyIdle: true, also }))
    const isStillMeant = () => {
      const record = this.#fleet.record(id)
      return record.status === 'running' && this.activity.isIdle(record)
    }
    await this.#options.kill(id, { isStillMeant, also, reason: `It was idle for ${idleMs / 1000} s.` })
  }

  async #pausedTooLong(id: string): Promise<void> {
    const { pausedMs } = this.#fleet.record(id).timeouts
    const also = () => this.#fleet.events.add(id, 'paused-timeout', { pausedMs })
    const isStillMeant = () => this.#fleet.record(id).status === 'paused'
    await this.#options.kill(id, { isStillMeant, also, reason: `It was paused for ${pausedMs / 1000} s.` })
  }

  #inBackground(id: string, work: () => Promise<unknown>): void {
    if (this.#fleet.closed) return
    work().then(
      () => this.activity.again(id),
      (error) => {
        this.#fleet.log.error({ error, sandbox: id }, 'the action of a timeout failed; it is retried')
        this.activity.again(id, { failed: true })
      },
    )
  }
}

function withoutMemory(options: MoveOptions): MoveOptions {
  const { change } = options
  const changed = (current: SandboxRecord) => (typeof change === 'function' ? change(current) : change)
  return { ...options, change: (current) => ({ ...changed(current), memory: null }) }
}
