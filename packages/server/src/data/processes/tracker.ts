// Follows each process from its start to its recorded end, across restarts of the server.
import { setTimeout as sleep } from 'node:timers/promises'
import { type ExecParsed, IsletError, isId, newId, type ProcessInfo } from '@islet/contract'
import type { Events } from '../../control/events.ts'
import type { Beginning, RunningSandbox, SandboxObserver } from '../../control/fleet.ts'
import type { Sandboxes } from '../../control/sandboxes.ts'
import type { Db } from '../../db/db.ts'
import type { ProcessQuery, ProcessRecord, ProcessTable } from '../../db/processes.ts'
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
import { ENDED, newPace, TrackedProcess, toLost, toResult, whyAwake } from './tracked.ts'

/** Records of ended processes per sandbox; the oldest are removed. */
const KEEP_ENDED = 1000
const SWEEP_EVERY = 100
const GUEST_WAIT_MS = 10_000
const AGAIN_MS = 5000

const STARTED_OVER =
  'The processes of the sandbox have ended: it was hibernated, lost while it was suspended, or restored from a checkpoint.'

const SIGKILL = 9
/** Signals that are sent to end a process: HUP, INT, QUIT, KILL, TERM. */
const ENDING_SIGNALS: readonly number[] = [1, 2, 3, SIGKILL, 15]

export interface TrackerOptions {
  db: Db
  sandboxes: Sandboxes
  events: Events
  output: OutputOptions
  log: Log
}

type StartInput = Pick<ExecParsed, 'command' | 'cwd' | 'env' | 'user' | 'timeout' | 'keepOutput'>

/** What a process belongs to. */
export interface ProcessOwner {
  terminalId?: string
  service?: string
  /** The caller waits for its end. */
  foreground?: boolean
}

interface PrepareOptions extends ProcessOwner {
  /** Default: a new one. */
  id?: string
  terminal: boolean
  maxRunAfterDisconnectMs?: number
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
  /** To be killed when their sandboxes resume. */
  readonly #cancelled = new Set<TrackedProcess>()
  #starts = 0
  #closed = false
  /** The server is shutting down: clients that disconnect now do not abandon their processes. */
  #isLeaving = false

  constructor(options: TrackerOptions) {
    this.#options = options
    this.#records = new ProcessRecords(options)
    this.table = this.#records.table
    this.outputs = new Outputs(options.output, {
      running: (id) => this.#tracked.get(id)?.log,
      unended: (sandboxId) => new Set(this.table.running(sandboxId).map(({ id }) => id)),
      ...options,
    })
    options.sandboxes.observe(this)
  }

  /** A process that is about to start; add listeners, then `spawn` it. */
  prepare(sandbox: RunningSandbox, input: StartInput, options: PrepareOptions): TrackedProcess {
    const { cwd, user } = placeOf(input, sandbox.record)
    const record: ProcessRecord = {
      id: options.id ?? newId('process'),
      sandboxId: sandbox.record.id,
      command: input.command,
      status: 'running',
      outcome: null,
      reason: null,
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

  /** A process that never ran is an error and leaves no record. */
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
      // A service includes everything that its command started: nothing of it may hold the port at a restart.
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
      // It was marked as lost while it was being started: report that, not the guest's error.
      if (tracked.record.status === 'lost') throw new IsletError('sandbox_lost', tracked.lostBecause)
      throw error
    }
  }

  /** The current record, running or not. */
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

  /** Each record is read when it is used: a command may have half a megabyte. */
  list(sandboxId: string, query: ProcessQuery): Iterable<ProcessRecord> {
    this.#options.sandboxes.record(sandboxId)
    return this.#each(this.table.ids(sandboxId, query))
  }

  /** Oldest first, each read when it is used. */
  ofTerminal(terminalId: string): Iterable<ProcessRecord> {
    return this.#each(this.table.idsOfTerminal(terminalId))
  }

  #each(ids: string[]): Iterable<ProcessRecord> {
    const find = (id: string) => this.#tracked.get(id)?.record ?? this.table.find(id)
    const records = ids.values().map(find)
    return records.filter((record) => record !== undefined)
  }

  /** Undefined once it has ended. Waits while processes from before a restart are being adopted. */
  async followed(sandboxId: string, processId: string): Promise<TrackedProcess | undefined> {
    const { status } = this.record(sandboxId, processId)
    // A sandbox that is still being recovered has not begun to adopt its processes.
    if (status === 'running' && !this.#tracked.has(processId))
      await this.#options.sandboxes.running(sandboxId).catch(() => {})
    await this.#adopting.get(sandboxId)
    const tracked = this.#tracked.get(processId)
    return tracked?.record.status === 'running' ? tracked : undefined
  }

  /** The same for an ended process: it only reports its end. */
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

  /** Records the signal before it is sent, so that after a crash the process still counts as cancelled and not as failed. */
  async signal({ record }: TrackedProcess, signal: number, options: { group: boolean }): Promise<void> {
    const { machine } = await this.running(record.sandboxId)
    if (ENDING_SIGNALS.includes(signal)) {
      record.cancelSignals |= 1 << signal
      this.table.setCancelSignals(record.id, record.cancelSignals)
    }
    await machine.guest.signal(record.id, signal, options)
  }

  /** Kills its whole session. */
  async kill(tracked: TrackedProcess): Promise<void> {
    // Not found: it ended by itself meanwhile.
    await this.signal(tracked, SIGKILL, { group: true }).catch(ignoring('process_not_found'))
  }

  /** As `kill`, but never fails: in a suspended sandbox the process is killed on resume. */
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
        // `sandbox_lost`: the sandbox or the server ended meanwhile; that code handles the processes.
        this.#options.log[hasCode(error, 'sandbox_lost') ? 'debug' : 'error'](
          { sandbox: id, error },
          'processes not adopted',
        )
      })
      .finally(() => this.#adopting.get(id) === work && this.#adopting.delete(id))
    this.#adopting.set(id, work)
    return work
  }

  /** With `kept` the processes go on after the resume. */
  suspended(sandboxId: string, { kept }: { kept: boolean }): void {
    if (!kept) this.#loseAll(sandboxId, STARTED_OVER)
  }

  /** Attaches to processes that still run, and records those that ended meanwhile. */
  async #adopt(sandbox: RunningSandbox): Promise<void> {
    const { guest } = sandbox.machine
    const known = this.table.running(sandbox.record.id)
    // No deadline, because a busy machine may redial late. If the guest is dead, the fleet notices and this rejects.
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
      // Skip processes that were started meanwhile. A fork with memory has processes with the ids of its source.
      if (this.#tracked.get(state.id)?.record.sandboxId === sandbox.record.id) continue
      const source = state.running ? this.table.find(state.id) : undefined
      await leaveAlone(guest, state, source && this.#use(sandbox.record.id, source))
    }
  }

  async gone(sandboxId: string, options: { removed: boolean }): Promise<void> {
    this.#loseAll(sandboxId, ENDED)
    this.#paces.delete(sandboxId)
    this.outputs.gone(sandboxId, options)
  }

  /** From now on disconnected clients do not abandon their processes. */
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
      if (!tracked) void this.#keepEnd(toLost(record, because))
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

  /** Keeps the sandbox awake for a process that wants that. Call the returned function at its end. */
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
        // Any failure may come from the memory limit; a success does not.
        const oom = (exit.code !== 0 || exit.signal !== 0) && (await this.#sawOom(sandbox))
        const result = withHint(toResult(exit, oom), sandbox.record, tracked.log)
        // The guest keeps the result until it is recorded here.
        if (await this.#end(tracked, 'exited', result)) process.forget()
      },
      () => this.#end(tracked, 'lost'),
    )
  }

  /**
   * First callers that wait are answered, then the end is recorded: after a crash in between, the guest reports it to the next
   * server. Returns whether it is recorded. During shutdown guests seem lost but are not, so nothing is recorded.
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
    const isKept = await this.#keepEnd(record)
    if (this.#tracked.get(record.id) === tracked) this.#tracked.delete(record.id)
    return isKept
  }

  /** On a full disk it retries until there is room. */
  async #keepEnd(record: ProcessRecord): Promise<boolean> {
    while (!this.#closed) {
      try {
        await this.#records.ended(record)
        return true
      } catch (error) {
        this.#options.log.error({ process: record.id, error }, 'the end of a process is not recorded yet')
        await sleep(AGAIN_MS, undefined, { ref: false })
      }
    }
    return false
  }

  async #sawOom({ machine }: RunningSandbox): Promise<boolean> {
    const kills = await this.#options.sandboxes.oomKills(machine).catch(() => machine.oomKillsSeen)
    // After a move to another cell the count begins at 0.
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
