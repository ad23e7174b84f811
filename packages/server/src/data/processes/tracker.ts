// Follows every process from its start to its recorded end, across restarts of the server.
import { setTimeout as sleep } from 'node:timers/promises'
import { type ExecParsed, IsletError, isId, newId, type ProcessInfo } from '@islet/contract'
import type { Events } from '../../control/events.ts'
import type { Beginning, RunningSandbox, SandboxObserver } from '../../control/fleet.ts'
import type { Sandboxes } from '../../control/sandboxes.ts'
import type { Db } from '../../db/db.ts'
import type { ProcessRecord, ProcessTable } from '../../db/processes.ts'
import type { GuestProcess, SpawnSpec } from '../../guest/guest.ts'
import { hasCode, ignoring } from '../../lib/has-code.ts'
import type { Rate } from '../../lib/rate.ts'
import type { Log } from '../../log.ts'
import type { OutputLog } from '../output/output-log.ts'
import { type OutputOptions, Outputs } from '../output/outputs.ts'
import { withHint } from './network-hint.ts'
import { ProcessRecords } from './records.ts'
import { placeOf, toSpawn } from './spawn.ts'
import { leaveAlone } from './strangers.ts'
import { newPace, TrackedProcess, toResult, whyAwake } from './tracked.ts'

/** Ended processes remembered in each sandbox; the oldest go first. */
const KEEP_ENDED = 1000
const SWEEP_EVERY = 100
const GUEST_WAIT_MS = 10_000
const AGAIN_MS = 5000

const STARTED_OVER =
  'What ran in the sandbox has ended: it was hibernated, lost while it stood still, or taken back to a checkpoint.'
const ENDED = 'The sandbox ended before the process did.'

const SIGKILL = 9
/** Hangup, interrupt, quit, kill, terminate: sent to end a process, not to tell it something. */
const ENDING_SIGNALS: readonly number[] = [1, 2, 3, SIGKILL, 15]

export interface TrackerOptions {
  db: Db
  sandboxes: Sandboxes
  events: Events
  output: OutputOptions
  log: Log
}

export type StartInput = Pick<ExecParsed, 'command' | 'cwd' | 'env' | 'user' | 'timeout' | 'keepOutput'>

export interface PrepareOptions {
  /** Default: a new one. */
  id?: string
  terminal: boolean
  /** The terminal it belongs to. */
  terminalId?: string
  /** The service it belongs to. */
  service?: string
  maxRunAfterDisconnectMs?: number
  /** Whoever starts it waits for its end. */
  foreground?: boolean
  keepAwake: boolean
}

export class ProcessTracker implements SandboxObserver {
  readonly table: ProcessTable
  readonly outputs: Outputs
  readonly #options: TrackerOptions
  readonly #records: ProcessRecords
  readonly #tracked = new Map<string, TrackedProcess>()
  readonly #adopting = new Map<string, Promise<void>>()
  readonly #paces = new Map<string, Rate>()
  /** To be killed as soon as their sandboxes go on. */
  readonly #cancelled = new Set<TrackedProcess>()
  #starts = 0
  #closed = false
  /** The clients are about to lose this server, and the next server's clients are not here yet. */
  #isLeaving = false

  constructor(options: TrackerOptions) {
    this.#options = options
    this.#records = new ProcessRecords(options)
    this.table = this.#records.table
    this.outputs = new Outputs(options.output, {
      running: (id) => this.#tracked.get(id)?.log,
      unended: (sandboxId) => new Set(this.table.running(sandboxId).map(({ id }) => id)),
      log: options.log,
    })
    options.sandboxes.observe(this)
  }

  /** A process that is about to start; give it its listeners, then `spawn` it. */
  prepare(sandbox: RunningSandbox, input: StartInput, options: PrepareOptions): TrackedProcess {
    const { cwd, user } = placeOf(input, sandbox.record)
    const record: ProcessRecord = {
      id: options.id ?? newId('process'),
      sandboxId: sandbox.record.id,
      command: input.command,
      status: 'running',
      pid: null,
      cwd,
      user,
      terminal: options.terminal,
      terminalId: options.terminalId ?? null,
      service: options.service ?? null,
      cancelSignals: 0,
      maxRunAfterDisconnectMs: options.maxRunAfterDisconnectMs ?? null,
      foreground: options.foreground ?? false,
      keepAwake: options.keepAwake,
      startedAt: Date.now(),
      endedAt: null,
      outputBytes: 0,
      keepOutputBytes: this.outputs.keepBytes(input, { lower: options.service !== undefined }),
      result: null,
    }
    return this.#track(record, this.outputs.begin(record))
  }

  /** One that never ran is an error and leaves no record. */
  async spawn(
    sandbox: RunningSandbox,
    tracked: TrackedProcess,
    input: StartInput,
    io: Pick<SpawnSpec, 'stdin' | 'pty' | 'quietMs'>,
  ): Promise<GuestProcess> {
    const { record } = tracked
    this.#records.begun(record)
    this.#tracked.set(record.id, tracked)
    tracked.leave = this.#use(record.sandboxId, record)
    try {
      await sandbox.machine.envReady
      this.#options.sandboxes.show(sandbox)
      // A service is all that its command has started: nothing of it may hold its port when it is started again.
      const spec = { ...toSpawn(record.id, input, sandbox), ...io, endsSession: record.service !== null }
      const process = await sandbox.machine.guest.spawn(spec, tracked)
      record.pid = process.pid
      this.#follow(sandbox, tracked, process)
      this.#sweep(record.sandboxId)
      return process
    } catch (error) {
      this.#tracked.delete(record.id)
      tracked.leave()
      this.#records.neverRan(record, error)
      // Given up while it was being started: that is the reason, not what the guest said then.
      if (tracked.record.status === 'lost') throw new IsletError('sandbox_lost', tracked.lostBecause)
      throw error
    }
  }

  /** As it is now, running or not. */
  record(sandboxId: string, processId: string): ProcessRecord {
    this.#options.sandboxes.record(sandboxId)
    const tracked = this.#tracked.get(processId)
    if (tracked?.record.sandboxId === sandboxId) return tracked.record
    const record = isId('process', processId) ? this.table.get(sandboxId, processId) : undefined
    if (record) return record
    throw new IsletError(
      'process_not_found',
      `There is no process ${processId.slice(0, 64)} in ${sandboxId}.`,
    )
  }

  /** Read one after the other as they are used: a command may have half a megabyte. */
  list(sandboxId: string, query: { status?: ProcessInfo['status']; limit: number }): Iterable<ProcessRecord> {
    this.#options.sandboxes.record(sandboxId)
    return this.#each(this.table.ids(sandboxId, query))
  }

  /** Oldest first, as list. */
  ofTerminal(terminalId: string): Iterable<ProcessRecord> {
    return this.#each(this.table.idsOfTerminal(terminalId))
  }

  #each(ids: string[]): Iterable<ProcessRecord> {
    const find = (id: string) => this.#tracked.get(id)?.record ?? this.table.find(id)
    const records = ids.values().map(find)
    return records.filter((record) => record !== undefined)
  }

  /** Undefined once it has ended. Waits while processes of before a restart are being found again. */
  async followed(sandboxId: string, processId: string): Promise<TrackedProcess | undefined> {
    const { status } = this.record(sandboxId, processId)
    // A sandbox that is still being brought back has not begun to find them.
    if (status === 'running' && !this.#tracked.has(processId))
      await this.#options.sandboxes.running(sandboxId).catch(() => {})
    await this.#adopting.get(sandboxId)
    const tracked = this.#tracked.get(processId)
    return tracked?.record.status === 'running' ? tracked : undefined
  }

  /** The same for one that has ended: all it still says is how. */
  ended(record: ProcessRecord): TrackedProcess {
    const tracked = new TrackedProcess({ ...record }, this.outputs.recover(record), newPace(), () => {})
    tracked.end(record.status === 'exited' ? 'exited' : 'lost', record.result)
    return tracked
  }

  async running(sandboxId: string): Promise<RunningSandbox> {
    const sandbox = await this.#options.sandboxes.running(sandboxId)
    if (!sandbox.machine.guest.connected) await sandbox.machine.guest.ready({ timeoutMs: GUEST_WAIT_MS })
    return sandbox
  }

  /** That it was asked for is recorded before it is sent: a crash in between does not make a failure of it. */
  async signal({ record }: TrackedProcess, signal: number, options: { group: boolean }): Promise<void> {
    const { machine } = await this.running(record.sandboxId)
    if (ENDING_SIGNALS.includes(signal)) {
      record.cancelSignals |= 1 << signal
      this.table.setCancelSignals(record.id, record.cancelSignals)
    }
    await machine.guest.signal(record.id, signal, options)
  }

  /** With its whole session. */
  async kill(tracked: TrackedProcess): Promise<void> {
    // Not found: it ended by itself meanwhile.
    await this.signal(tracked, SIGKILL, { group: true }).catch(ignoring('process_not_found'))
  }

  /** As `kill`, for one that nobody waits for any more: one that stands still is killed when it goes on. */
  async cancel(tracked: TrackedProcess): Promise<void> {
    try {
      await this.kill(tracked)
    } catch (error) {
      this.#options.log.debug({ process: tracked.record.id, error }, 'cancelled process not killed yet')
      if (tracked.record.status === 'running') this.#cancelled.add(tracked)
    }
  }

  began(sandbox: RunningSandbox, how: Beginning): void | Promise<void> {
    if (how === 'created') return
    const { id } = sandbox.record
    if (how === 'resumed') return this.#killCancelled(id)
    const work = this.#adopt(sandbox)
      .catch((error) => {
        // Ended again, or its server: who did that says what becomes of them.
        this.#options.log[hasCode(error, 'sandbox_lost') ? 'debug' : 'error'](
          { sandbox: id, error },
          'processes not adopted',
        )
      })
      .finally(() => this.#adopting.get(id) === work && this.#adopting.delete(id))
    this.#adopting.set(id, work)
    return work
  }

  /** What is kept goes on by itself: it is waited for like any other. */
  suspended(sandboxId: string, { kept }: { kept: boolean }): void {
    if (!kept) this.#loseAll(sandboxId, STARTED_OVER)
  }

  /** Be the reader of what still runs, record what ended meanwhile. */
  async #adopt(sandbox: RunningSandbox): Promise<void> {
    const { guest } = sandbox.machine
    const known = this.table.running(sandbox.record.id)
    // However late it dials again on a busy machine: if it is dead, the fleet finds out, and this rejects.
    await guest.ready()
    const states = new Map((await guest.processes()).map((state) => [state.id, state]))
    for (const record of known) {
      const state = states.get(record.id)
      states.delete(record.id)
      const tracked = this.#track(record, this.outputs.recover(record))
      if (state) tracked.log.skipTo(state.outputStart)
      record.outputBytes = tracked.log.end
      this.#tracked.set(record.id, tracked)
      tracked.leave = this.#use(record.sandboxId, record)
      if (!state) {
        void this.#end(tracked, 'lost')
        continue
      }
      record.pid = state.pid
      this.#follow(sandbox, tracked, await guest.attach(record.id, tracked.log.end, tracked))
      tracked.abandonment.begin()
    }
    for (const state of states.values()) {
      // Started here meanwhile. A fork with memory has processes by the same ids as its source.
      if (this.#tracked.get(state.id)?.record.sandboxId === sandbox.record.id) continue
      const source = state.running ? this.table.find(state.id) : undefined
      await leaveAlone(guest, state, source && this.#use(sandbox.record.id, source))
    }
  }

  async gone(sandboxId: string, options: { removed: boolean }): Promise<void> {
    this.#loseAll(sandboxId, ENDED)
    this.#paces.delete(sandboxId)
    await this.outputs.gone(sandboxId, options)
  }

  /** From now on nobody counts as having left. */
  leave(): void {
    this.#isLeaving = true
  }

  close(): void {
    this.#closed = true
    for (const tracked of this.#tracked.values()) tracked.log.close()
  }

  #loseAll(sandboxId: string, because: string): void {
    for (const record of this.table.running(sandboxId)) {
      const tracked = this.#tracked.get(record.id)
      if (!tracked) void this.#keepEnd({ ...record, status: 'lost', endedAt: Date.now() }, because)
      else {
        tracked.lostBecause = because
        void this.#end(tracked, 'lost')
      }
    }
  }

  #killCancelled(sandboxId: string): void {
    for (const tracked of this.#cancelled) {
      if (tracked.record.sandboxId !== sandboxId) continue
      this.#cancelled.delete(tracked)
      void this.cancel(tracked)
    }
  }

  /** If it is work. Call the answer at its end. */
  #use(sandboxId: string, record: ProcessRecord): () => void {
    const why = whyAwake(record)
    return why ? this.#options.sandboxes.keepAwake(sandboxId, why) : () => {}
  }

  #track(record: ProcessRecord, log: OutputLog): TrackedProcess {
    return new TrackedProcess(record, log, this.#pace(record.sandboxId), (tracked) => this.#abandon(tracked))
  }

  #abandon(tracked: TrackedProcess): void {
    if (this.#isLeaving || this.#closed) return
    this.kill(tracked).catch((error) => {
      this.#options.log.debug({ process: tracked.record.id, error }, 'abandoned process not killed')
      if (hasCode(error, 'invalid_state')) this.#cancelled.add(tracked)
      else tracked.abandonment.begin(AGAIN_MS)
    })
  }

  #follow(sandbox: RunningSandbox, tracked: TrackedProcess, process: GuestProcess): void {
    tracked.guest = process
    process.exited.then(
      async (exit) => {
        // Any failure may have been the memory limit's doing; a success was not.
        const oom = (exit.code !== 0 || exit.signal !== 0) && (await this.#sawOom(sandbox))
        const result = withHint(toResult(exit, oom), sandbox.record, tracked.log)
        // The guest remembers it until its end is kept here.
        if (await this.#end(tracked, 'exited', result)) process.forget()
      },
      () => this.#end(tracked, 'lost'),
    )
  }

  /**
   * Who waits for it hears of it first, then it is written down: when a crash comes between the two, the guest tells the next
   * server. Answers whether it is kept. When the server closes, its guests seem lost to it, but they are not.
   */
  async #end(
    tracked: TrackedProcess,
    status: 'exited' | 'lost',
    result: ProcessInfo['result'] = null,
  ): Promise<boolean> {
    const { record } = tracked
    if (this.#closed || record.status !== 'running') return !this.#closed
    tracked.guest = undefined
    tracked.end(status, result)
    this.#cancelled.delete(tracked)
    const isKept = await this.#keepEnd(record, tracked.lostBecause)
    if (this.#tracked.get(record.id) === tracked) this.#tracked.delete(record.id)
    return isKept
  }

  /** On a full disk it is tried again until there is room. */
  async #keepEnd(record: ProcessRecord, lostBecause: string): Promise<boolean> {
    while (!this.#closed) {
      try {
        await this.#records.ended(record, lostBecause)
        return true
      } catch (error) {
        this.#options.log.error({ process: record.id, error }, 'the end of a process is not written down yet')
        await sleep(AGAIN_MS, undefined, { ref: false })
      }
    }
    return false
  }

  async #sawOom({ machine }: RunningSandbox): Promise<boolean> {
    const kills = await this.#options.sandboxes.oomKills(machine).catch(() => machine.oomKillsSeen)
    // Another cell, with the same memory, counts from 0.
    const saw = kills > (kills < machine.oomKillsSeen ? 0 : machine.oomKillsSeen)
    machine.oomKillsSeen = kills
    return saw
  }

  #pace(sandboxId: string): Rate {
    const pace = this.#paces.get(sandboxId) ?? newPace()
    this.#paces.set(sandboxId, pace)
    return pace
  }

  #sweep(sandboxId: string): void {
    if (++this.#starts % SWEEP_EVERY !== 0) return
    for (const id of this.table.removeOld(sandboxId, KEEP_ENDED)) this.outputs.remove({ sandboxId, id })
  }
}
