// Terminals: an interactive shell, or a place for tracked commands. Both run ordinary processes.
import { posix } from 'node:path'
import {
  type CreateTerminalParsed,
  DEFAULTS,
  IsletError,
  isId,
  LIMITS,
  LOGIN_SHELL,
  newId,
  type ProcessInfo,
  type ProcessOutput,
  type RunTerminalCommandParsed,
  routePath,
  type TerminalCommandInfo,
  type TerminalInfo,
} from '@islet/contract'
import type { Beginning, RunningSandbox, SandboxObserver } from '../control/fleet.ts'
import type { Sandboxes } from '../control/sandboxes.ts'
import type { Db } from '../db/db.ts'
import { type TerminalRecord, TerminalTable } from '../db/terminals.ts'
import type { Log } from '../log.ts'
import { release, type Told } from './output/kept-bytes.ts'
import type { Processes } from './processes/processes.ts'

/** Output in a list of commands, newest commands first; older ones are listed without output. */
const LIST_OUTPUT_BYTES = 8 * 1024 * 1024

interface TerminalsOptions {
  db: Db
  sandboxes: Sandboxes
  processes: Processes
  log: Log
}

export class Terminals implements SandboxObserver {
  readonly #options: TerminalsOptions
  readonly #table: TerminalTable
  /** Terminals being destroyed: nothing new is started in them. */
  readonly #closing = new Set<string>()

  constructor(options: TerminalsOptions) {
    this.#options = options
    this.#table = new TerminalTable(options.db)
    this.#table.sweep()
    options.sandboxes.observe(this)
  }

  async create(sandboxId: string, input: CreateTerminalParsed): Promise<TerminalInfo> {
    await this.#options.sandboxes.running(sandboxId)
    const { pty = false, encoding = 'raw', cwd, env, user, keepAwake } = input
    this.#makeRoom(sandboxId)
    const record: TerminalRecord = {
      id: newId('terminal'),
      sandboxId,
      pty,
      processId: null,
      encoding,
      settings: pty ? { keepAwake } : { cwd, env, user },
      createdAt: Date.now(),
    }
    this.#table.insert(record)
    if (pty) await this.#startShell(record, input)
    return this.#toInfo(record)
  }

  async #startShell(record: TerminalRecord, input: CreateTerminalParsed): Promise<void> {
    const { shell, cols = 80, rows = 24, cwd, env, user, keepAwake, keepOutput } = input
    const command = shell === undefined ? LOGIN_SHELL : [shell]
    const start = { command, cwd, env, user, keepAwake, keepOutput, terminal: { cols, rows } }
    try {
      const { id } = await this.#options.processes.startOwned(record.sandboxId, start, {
        terminalId: record.id,
      })
      record.processId = id
      this.#table.setProcess(record.id, id)
    } catch (error) {
      this.#table.remove(record.id)
      throw error
    }
  }

  /** The open terminals: a pty is open until its shell ends. */
  list(sandboxId: string): TerminalInfo[] {
    this.#options.sandboxes.record(sandboxId)
    return (
      this.#table
        .list(sandboxId)
        .map((record) => this.#toInfo(record))
        // A pty without a process is still being created.
        .filter(({ pty, processId, status }) => status !== 'stopped' && (!pty || processId !== null))
    )
  }

  get(sandboxId: string, terminalId: string): TerminalInfo {
    return this.#toInfo(this.#find(sandboxId, terminalId))
  }

  /** Kills the processes in it. */
  async destroy(sandboxId: string, terminalId: string): Promise<void> {
    this.#find(sandboxId, terminalId)
    this.#closing.add(terminalId)
    try {
      await this.#killAll(sandboxId, terminalId)
      this.#table.remove(terminalId)
    } finally {
      this.#closing.delete(terminalId)
    }
  }

  /** Waits for the end of a foreground command; when `signal` aborts (the client went away) the command is killed. */
  async run(
    sandboxId: string,
    terminalId: string,
    input: RunTerminalCommandParsed,
    options: { signal?: AbortSignal } = {},
  ): Promise<Told<TerminalCommandInfo>> {
    const terminal = this.#forCommands(sandboxId, terminalId)
    const { settings } = terminal
    const { processes } = this.#options
    const { command, timeout, background, keepOutput } = input
    const env = { ...settings.env, ...input.env }
    const cwd = joinPaths(settings.cwd, input.cwd)
    const start = { command, cwd, env, user: settings.user, timeout, keepOutput }
    const owner = { terminalId, foreground: !background }
    const { id } = await processes.startOwned(sandboxId, start, owner)
    try {
      this.#find(sandboxId, terminalId)
      if (!background) assertEnded(await processes.waitEnd(sandboxId, id, options.signal))
    } catch (error) {
      await processes.cancel(sandboxId, id).catch(() => {}) // the sandbox is gone, and the command with it
      throw error
    }
    return this.#toCommand(terminal, await processes.get(sandboxId, id))
  }

  /** Oldest first, each read when it is used. The newest ones have their output. */
  async commands(
    sandboxId: string,
    terminalId: string,
  ): Promise<Iterable<Told<TerminalCommandInfo>> & Disposable> {
    const terminal = this.#forCommands(sandboxId, terminalId)
    const { processes } = this.#options
    const printed = processes.ofTerminal(terminalId).map(({ id, outputBytes }) => ({ id, outputBytes }))
    const outputs = new Map<string, Told<ProcessOutput>>()
    let room = LIST_OUTPUT_BYTES
    try {
      for (const { id, outputBytes } of [...printed].reverse()) {
        if (room <= 0) break
        if (outputBytes > 0) outputs.set(id, await this.#output(terminal, id))
        room -= Math.min(outputBytes, DEFAULTS.execOutputBytes)
      }
    } catch (error) {
      release([...outputs.values()])
      throw error
    }
    return {
      *[Symbol.iterator]() {
        for (const process of processes.ofTerminal(terminalId))
          yield toCommand(process, outputs.get(process.id) ?? unread(process))
      },
      [Symbol.dispose]: () => release([...outputs.values()]),
    }
  }

  async command(
    sandboxId: string,
    terminalId: string,
    processId: string,
    options: { waitMs?: number; signal?: AbortSignal } = {},
  ): Promise<Told<TerminalCommandInfo>> {
    const terminal = this.#forCommands(sandboxId, terminalId)
    const process = await this.#options.processes.get(sandboxId, processId, options)
    if (options.waitMs) this.#assertKept(process)
    if (process.terminalId === terminalId) return this.#toCommand(terminal, process)
    throw new IsletError('process_not_found', `There is no command ${processId} in ${terminalId}.`)
  }

  async began({ record: { id } }: RunningSandbox, how: Beginning): Promise<void> {
    // After `resumed` a shell may just be starting.
    if (how === 'created' || how === 'resumed') return
    // The server crashed while it created these terminals: no client knows them.
    for (const half of this.#table.list(id).filter(({ pty, processId }) => pty && processId === null)) {
      try {
        await this.#killAll(id, half.id)
        this.#table.remove(half.id)
      } catch (error) {
        this.#options.log.warn({ sandbox: id, terminal: half.id, error }, 'incomplete terminal not removed')
      }
    }
  }

  async gone(sandboxId: string): Promise<void> {
    this.#table.removeOf(sandboxId)
  }

  /** When there are too many, removes the oldest one whose shell has ended. */
  #makeRoom(sandboxId: string): void {
    const all = this.#table.list(sandboxId)
    if (all.length < LIMITS.terminals) return
    const old = all.find((record) => record.processId !== null && !this.#isRunning(record))
    if (!old) {
      throw new IsletError('limit_exceeded', `A sandbox has at most ${LIMITS.terminals} terminals.`, {
        hint: 'Destroy some that are not needed any more.',
      })
    }
    this.#table.remove(old.id)
  }

  #find(sandboxId: string, terminalId: string): TerminalRecord {
    this.#options.sandboxes.record(sandboxId)
    const isOpen = isId('terminal', terminalId) && !this.#closing.has(terminalId)
    const record = isOpen ? this.#table.get(sandboxId, terminalId) : undefined
    if (record) return record
    throw new IsletError(
      'terminal_not_found',
      `There is no terminal ${terminalId.slice(0, 64)} in ${sandboxId}.`,
    )
  }

  #forCommands(sandboxId: string, terminalId: string): TerminalRecord {
    const record = this.#find(sandboxId, terminalId)
    if (!record.pty) return record
    throw new IsletError('invalid_state', `Terminal ${terminalId} is a pty: it takes input, not commands.`, {
      hint: 'Create a terminal without pty, or write to this one.',
    })
  }

  /** A caller that waits for a command must not mistake the end of the sandbox for its result. */
  #assertKept({ sandboxId, status }: ProcessInfo): void {
    if (status === 'lost' && this.#options.sandboxes.record(sandboxId).status !== 'running')
      throw new IsletError('sandbox_lost')
  }

  async #killAll(sandboxId: string, terminalId: string): Promise<void> {
    const { processes } = this.#options
    const running = processes.ofTerminal(terminalId).filter(({ status }) => status === 'running')
    await Promise.all(running.map(({ id }) => processes.kill(sandboxId, id)))
  }

  #isRunning({ id }: TerminalRecord): boolean {
    return this.#options.processes.ofTerminal(id).some(({ status }) => status === 'running')
  }

  #toInfo(record: TerminalRecord): TerminalInfo {
    const { id, sandboxId, pty, encoding, processId, settings, createdAt } = record
    return {
      id,
      sandboxId,
      pty,
      status: !pty ? 'ready' : this.#isRunning(record) ? 'running' : 'stopped',
      encoding,
      processId,
      channel: processId && routePath('attachProcess', { id: sandboxId, pid: processId }),
      keepAwake: settings.keepAwake ?? false,
      createdAt: new Date(createdAt).toISOString(),
    }
  }

  async #toCommand(terminal: TerminalRecord, process: ProcessInfo): Promise<Told<TerminalCommandInfo>> {
    const { id, outputBytes } = process
    return toCommand(process, outputBytes > 0 ? await this.#output(terminal, id) : unread(process))
  }

  #output({ sandboxId, encoding }: TerminalRecord, processId: string): Promise<Told<ProcessOutput>> {
    return this.#options.processes.output(sandboxId, processId, {
      encoding: encoding === 'base64' ? 'base64' : 'utf8',
    })
  }
}

function assertEnded({ status }: ProcessInfo): void {
  if (status !== 'lost') return
  throw new IsletError('sandbox_lost', 'The sandbox ended before the command did.')
}

function joinPaths(base: string | undefined, path: string | undefined): string | undefined {
  return base === undefined || path === undefined || posix.isAbsolute(path)
    ? (path ?? base)
    : posix.join(base, path)
}

type Printed = Pick<Told<ProcessOutput>, 'stdout' | 'stderr' | 'truncated' | 'droppedBytes'>

function toCommand(process: ProcessInfo, output: Printed): Told<TerminalCommandInfo> {
  const { id, terminalId, status, outcome, command, startedAt, endedAt, result } = process
  const { stdout, stderr, truncated, droppedBytes } = output
  return {
    id,
    terminalId: terminalId!,
    command: String(command),
    status: status === 'running' ? 'running' : outcome === 'completed' ? 'completed' : 'failed',
    outcome,
    stdout,
    stderr,
    truncated,
    droppedBytes,
    exitCode: result?.exitCode ?? null,
    durationMs: result?.durationMs ?? null,
    startedAt,
    finishedAt: endedAt,
  }
}

/** In place of output that was not read. */
const unread = ({ outputBytes }: ProcessInfo): Printed => ({
  stdout: '',
  stderr: '',
  truncated: outputBytes > 0,
  droppedBytes: outputBytes,
})
