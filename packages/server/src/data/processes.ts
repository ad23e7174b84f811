// The processes of all sandboxes: started, followed, found again after a restart, remembered after their end.
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import {
  DEFAULTS,
  type ExecParsed,
  type ExecResult,
  IsletError,
  isId,
  newId,
  type ProcessInfo,
  type ProcessOutput,
  type RunParsed,
  type RunResult,
  type StartProcessParsed,
} from '@islet/contract'
import type { RunningSandbox, Sandboxes, SandboxObserver } from '../control/sandboxes.ts'
import type { Db } from '../db/db.ts'
import { type ProcessRecord, ProcessTable } from '../db/processes.ts'
import type { GuestProcess, TerminalSize } from '../guest/guest.ts'
import type { Log } from '../log.ts'
import { attachTo } from './attachment.ts'
import { collectOutput } from './collect.ts'
import type { Attachment, ProcessService } from './data.ts'
import { OutputLog, readOutput } from './output-log.ts'
import { Pace } from './pace.ts'
import { runOnce } from './run.ts'
import { toSpawn } from './spawn.ts'
import { TrackedProcess, toProcessInfo, toResult } from './tracked.ts'

/** Ended processes remembered in each sandbox; the oldest go first. */
const KEEP_ENDED = 1000
const SWEEP_EVERY = 100
const GUEST_WAIT_MS = 10_000

export interface ProcessesOptions {
  db: Db
  sandboxes: Sandboxes
  outputDir: string
  log: Log
}

export class Processes implements ProcessService, SandboxObserver {
  readonly #options: ProcessesOptions
  readonly #table: ProcessTable
  readonly #tracked = new Map<string, TrackedProcess>()
  readonly #adopting = new Map<string, Promise<void>>()
  readonly #paces = new Map<string, Pace>()
  #starts = 0
  #closed = false

  constructor(options: ProcessesOptions) {
    this.#options = options
    this.#table = new ProcessTable(options.db)
    options.sandboxes.observe(this)
  }

  async exec(
    sandboxId: string,
    input: ExecParsed,
    options: { signal?: AbortSignal } = {},
  ): Promise<ExecResult> {
    const sandbox = await this.#running(sandboxId)
    options.signal?.throwIfAborted()
    const tracked = this.#track(sandboxId, input, sandbox, false)
    const output = collectOutput(input.maxOutputBytes ?? DEFAULTS.execOutputBytes)
    tracked.listeners.add(output)
    const process = await this.#spawn(sandbox, tracked, input, { stdin: input.stdin !== undefined })
    const kill = () => void this.#signal(sandbox, tracked.record.id, 9).catch(() => {})
    options.signal?.addEventListener('abort', kill, { once: true })
    try {
      if (input.stdin !== undefined)
        void feed(process, Buffer.from(input.stdin, input.stdinEncoding ?? 'utf8'))
      const { result, id } = await tracked.ended
      options.signal?.throwIfAborted()
      if (!result) throw new IsletError('sandbox_lost')
      return { processId: id, ...result, ...output.texts(input.encoding ?? 'utf8') }
    } finally {
      options.signal?.removeEventListener('abort', kill)
    }
  }

  run(input: RunParsed, options: { signal?: AbortSignal } = {}): Promise<RunResult> {
    return runOnce(this.#options.sandboxes, this, input, options)
  }

  async start(sandboxId: string, input: StartProcessParsed): Promise<ProcessInfo> {
    const sandbox = await this.#running(sandboxId)
    const tracked = this.#track(sandboxId, input, sandbox, input.terminal !== undefined)
    await this.#spawn(sandbox, tracked, input, { stdin: input.stdin ?? false, pty: input.terminal })
    return toProcessInfo(tracked.record)
  }

  list(sandboxId: string, query: { status?: ProcessInfo['status']; limit?: number }): ProcessInfo[] {
    this.#options.sandboxes.record(sandboxId)
    return this.#table
      .list(sandboxId, { status: query.status, limit: query.limit ?? 100 })
      .map((record) => toProcessInfo(this.#tracked.get(record.id)?.record ?? record))
  }

  async get(
    sandboxId: string,
    processId: string,
    options: { waitMs?: number; signal?: AbortSignal } = {},
  ): Promise<ProcessInfo> {
    const record = this.#record(sandboxId, processId)
    if (!options.waitMs || record.status !== 'running') return toProcessInfo(record)
    const tracked = await this.#followed(sandboxId, processId)
    if (tracked) await waitFor(tracked.ended, options.waitMs, options.signal)
    return toProcessInfo(this.#record(sandboxId, processId))
  }

  async kill(sandboxId: string, processId: string): Promise<ProcessInfo> {
    const tracked = await this.#followed(sandboxId, processId)
    if (tracked) {
      const sandbox = await this.#running(sandboxId)
      await this.#signal(sandbox, processId, 9).catch(ignoreEnded)
      await tracked.ended
    }
    return toProcessInfo(this.#record(sandboxId, processId))
  }

  async signal(
    sandboxId: string,
    processId: string,
    signal: number,
    options: { group: boolean },
  ): Promise<void> {
    await this.#live(sandboxId, processId)
    const sandbox = await this.#running(sandboxId)
    await sandbox.machine.guest.signal(processId, signal, options)
  }

  async writeStdin(
    sandboxId: string,
    processId: string,
    bytes: Uint8Array,
    options: { end: boolean },
  ): Promise<void> {
    const { guest } = await this.#live(sandboxId, processId)
    if (bytes.length > 0) await guest?.writeStdin(bytes)
    if (options.end) await guest?.endStdin()
  }

  async resize(sandboxId: string, processId: string, size: TerminalSize): Promise<void> {
    const { record } = await this.#live(sandboxId, processId)
    if (!record.terminal) throw new IsletError('invalid_state', `Process ${processId} has no terminal.`)
    const sandbox = await this.#running(sandboxId)
    await sandbox.machine.guest.resize(processId, size)
  }

  async output(sandboxId: string, processId: string, encoding: 'utf8' | 'base64'): Promise<ProcessOutput> {
    const record = this.#record(sandboxId, processId)
    const kept = readOutput(this.#outputPath(sandboxId, processId), DEFAULTS.scrollbackBytes)
    const text = (channel: string) =>
      Buffer.concat(
        (kept?.pieces ?? []).filter((piece) => piece.channel === channel).map(({ bytes }) => bytes),
      ).toString(encoding)
    return {
      stdout: text('stdout'),
      stderr: text('stderr'),
      truncated: (kept?.start ?? 0) > 0,
      outputBytes: kept?.end ?? record.outputBytes,
    }
  }

  async attach(sandboxId: string, processId: string, options: { replay: boolean }): Promise<Attachment> {
    const followed = await this.#followed(sandboxId, processId)
    const tracked = followed ?? this.#ended(this.#record(sandboxId, processId))
    // Read and subscribe without a pause between them: nothing is missed, nothing comes twice.
    const kept = options.replay
      ? readOutput(this.#outputPath(sandboxId, processId), DEFAULTS.scrollbackBytes)
      : undefined
    return attachTo(
      tracked,
      { pieces: kept?.pieces ?? [], truncated: (kept?.start ?? 0) > 0 },
      {
        resize: (size) => this.resize(sandboxId, processId, size),
        signal: (signal) => this.signal(sandboxId, processId, signal, { group: true }),
      },
    )
  }

  /** After a restart: be the reader of what still runs, record what ended meanwhile. */
  adopted(sandbox: RunningSandbox): Promise<void> {
    const { id } = sandbox.record
    const work = this.#adopt(sandbox)
      .catch((error) => this.#options.log.error({ sandbox: id, error }, 'processes not adopted'))
      .finally(() => this.#adopting.delete(id))
    this.#adopting.set(id, work)
    return work
  }

  async #adopt(sandbox: RunningSandbox): Promise<void> {
    const { guest } = sandbox.machine
    const known = this.#table.running(sandbox.record.id)
    await guest.ready({ timeoutMs: GUEST_WAIT_MS })
    const states = new Map((await guest.processes()).map((state) => [state.id, state]))
    for (const record of known) {
      const state = states.get(record.id)
      states.delete(record.id)
      const log = new OutputLog(this.#outputPath(record.sandboxId, record.id), DEFAULTS.scrollbackBytes)
      const tracked = new TrackedProcess(record, log, this.#pace(record.sandboxId))
      this.#tracked.set(record.id, tracked)
      if (!state) this.#end(tracked, 'lost')
      else
        this.#follow(
          sandbox,
          tracked,
          await guest.attach(record.id, Math.max(log.end, state.outputStart), tracked),
        )
    }
    // What is left had its end recorded before the crash, but the guest was not told so.
    for (const state of states.values())
      (await guest.attach(state.id, state.outputEnd, { write() {} })).forget()
  }

  async gone(sandboxId: string, options: { removed: boolean }): Promise<void> {
    for (const record of this.#table.running(sandboxId)) {
      const tracked = this.#tracked.get(record.id)
      if (tracked) this.#end(tracked, 'lost')
      else this.#table.ended(record.id, { ...record, status: 'lost', endedAt: Date.now() })
    }
    this.#paces.delete(sandboxId)
    if (options.removed) await rm(join(this.#options.outputDir, sandboxId), { recursive: true, force: true })
  }

  /** Processes go on; the next server follows them. */
  close(): void {
    this.#closed = true
    for (const tracked of this.#tracked.values()) tracked.log.close()
  }

  #track(sandboxId: string, input: StartInput, sandbox: RunningSandbox, terminal: boolean): TrackedProcess {
    const { cwd, user } = toSpawn('', input, sandbox.record)
    const record: ProcessRecord = {
      id: newId('process'),
      sandboxId,
      command: input.command,
      status: 'running',
      pid: null,
      cwd,
      user,
      terminal,
      startedAt: Date.now(),
      endedAt: null,
      outputBytes: 0,
      result: null,
    }
    const log = new OutputLog(this.#outputPath(sandboxId, record.id), DEFAULTS.scrollbackBytes)
    return new TrackedProcess(record, log, this.#pace(sandboxId))
  }

  async #spawn(
    sandbox: RunningSandbox,
    tracked: TrackedProcess,
    input: StartInput,
    io: { stdin: boolean; pty?: TerminalSize },
  ): Promise<GuestProcess> {
    const { record } = tracked
    this.#table.insert(record)
    this.#tracked.set(record.id, tracked)
    try {
      const spec = toSpawn(record.id, input, sandbox.record)
      const process = await sandbox.machine.guest.spawn({ ...spec, ...io }, tracked)
      record.pid = process.pid
      this.#follow(sandbox, tracked, process)
      this.#sweep(record.sandboxId)
      return process
    } catch (error) {
      this.#tracked.delete(record.id)
      this.#table.remove(record.id)
      throw error
    }
  }

  #follow(sandbox: RunningSandbox, tracked: TrackedProcess, process: GuestProcess): void {
    tracked.guest = process
    process.exited.then(
      async (exit) => {
        // Any failure may have been the memory limit's doing; a success was not.
        const oom = (exit.code !== 0 || exit.signal !== 0) && (await this.#sawOom(sandbox))
        this.#end(tracked, 'exited', toResult(exit, oom))
        process.forget()
      },
      () => {
        if (!this.#closed) this.#end(tracked, 'lost')
      },
    )
  }

  #end(tracked: TrackedProcess, status: 'exited' | 'lost', result: ProcessInfo['result'] = null): void {
    if (this.#closed || tracked.record.status !== 'running') return
    tracked.guest = undefined
    tracked.end(status, result)
    this.#table.ended(tracked.record.id, tracked.record)
    this.#tracked.delete(tracked.record.id)
  }

  async #sawOom({ machine }: RunningSandbox): Promise<boolean> {
    const kills = await this.#options.sandboxes.oomKills(machine).catch(() => machine.oomKillsSeen)
    const saw = kills > machine.oomKillsSeen
    machine.oomKillsSeen = kills
    return saw
  }

  async #running(sandboxId: string): Promise<RunningSandbox> {
    const sandbox = await this.#options.sandboxes.running(sandboxId)
    if (!sandbox.machine.guest.connected) await sandbox.machine.guest.ready({ timeoutMs: GUEST_WAIT_MS })
    return sandbox
  }

  #record(sandboxId: string, processId: string): ProcessRecord {
    this.#options.sandboxes.record(sandboxId)
    const tracked = this.#tracked.get(processId)
    if (tracked?.record.sandboxId === sandboxId) return tracked.record
    const record = isId('process', processId) ? this.#table.get(sandboxId, processId) : undefined
    if (!record)
      throw new IsletError(
        'process_not_found',
        `There is no process ${processId.slice(0, 64)} in ${sandboxId}.`,
      )
    return record
  }

  /** Undefined once it has ended. */
  async #followed(sandboxId: string, processId: string): Promise<TrackedProcess | undefined> {
    this.#record(sandboxId, processId)
    await this.#adopting.get(sandboxId)
    return this.#tracked.get(processId)
  }

  async #live(sandboxId: string, processId: string): Promise<TrackedProcess> {
    const tracked = await this.#followed(sandboxId, processId)
    if (!tracked) throw new IsletError('invalid_state', `Process ${processId} has ended.`)
    return tracked
  }

  #ended(record: ProcessRecord): TrackedProcess {
    const log = new OutputLog(this.#outputPath(record.sandboxId, record.id), DEFAULTS.scrollbackBytes)
    const tracked = new TrackedProcess({ ...record }, log, this.#pace(record.sandboxId))
    tracked.end(record.status === 'exited' ? 'exited' : 'lost', record.result)
    return tracked
  }

  async #signal(sandbox: RunningSandbox, processId: string, signal: number): Promise<void> {
    await sandbox.machine.guest.signal(processId, signal, { group: true })
  }

  #pace(sandboxId: string): Pace {
    let pace = this.#paces.get(sandboxId)
    if (!pace) {
      pace = new Pace()
      this.#paces.set(sandboxId, pace)
    }
    return pace
  }

  #outputPath(sandboxId: string, processId: string): string {
    return join(this.#options.outputDir, sandboxId, `${processId}.log`)
  }

  #sweep(sandboxId: string): void {
    if (++this.#starts % SWEEP_EVERY !== 0) return
    for (const id of this.#table.old(sandboxId, KEEP_ENDED)) {
      this.#table.remove(id)
      void rm(this.#outputPath(sandboxId, id), { force: true })
    }
  }
}

type StartInput = Pick<ExecParsed, 'command' | 'cwd' | 'env' | 'user' | 'timeout'>

async function feed(process: GuestProcess, bytes: Buffer): Promise<void> {
  try {
    await process.writeStdin(bytes)
    await process.endStdin()
  } catch {
    // The program ended without reading all of it; its result says how.
  }
}

function ignoreEnded(error: unknown): void {
  if (!(error instanceof IsletError) || error.code !== 'process_not_found') throw error
}

async function waitFor(ended: Promise<unknown>, waitMs: number, signal?: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(resolve, waitMs)
  signal?.addEventListener('abort', () => resolve(), { once: true })
  await Promise.race([ended, promise])
  clearTimeout(timer)
  signal?.throwIfAborted()
}
