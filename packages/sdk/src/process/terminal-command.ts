// The commands of a terminal without a pty.
import {
  IsletError,
  type Outcome,
  type RunTerminalCommand,
  type TerminalCommandInfo,
} from '@islet/contract/client'
import type { Client } from '../client/client.ts'
import { hasCode } from '../errors.ts'
import { ABORTABLE, type Abortable, guard } from '../options.ts'
import { backoffMs, sleep } from '../transport/retry.ts'

export interface TerminalCommandOptions extends Omit<RunTerminalCommand, 'command'> {
  /** Aborting kills a command in the foreground. */
  signal?: AbortSignal
}

type Caller = Pick<Client, 'call'>

type TerminalParams = {
  id: string
  tid: string
}

/** How long one request waits for a command to end, and how long to wait for a lost server. */
const POLL_MS = 30_000
const RECONNECT_MS = 30_000

export class TerminalCommands {
  readonly #client: Caller
  readonly #params: TerminalParams

  constructor(client: Caller, params: TerminalParams) {
    this.#client = client
    this.#params = params
  }

  /** Runs shell text. Resolves when the command has ended, or with `background` as soon as it runs. */
  async run(command: string, options: TerminalCommandOptions = {}): Promise<TerminalCommand> {
    const { background, signal, ...rest } = options
    const body = { command, ...rest, background: true }
    signal?.throwIfAborted()
    // Starting a foreground command is not aborted: its id is needed to kill it.
    const call = { params: this.#params, body, signal: background ? signal : undefined }
    const info = await this.#client.call('runTerminalCommand', call)
    const running = this.#toCommand(info)
    if (background) return running
    try {
      return await running.wait(0, { signal })
    } catch (error) {
      const params = { id: this.#params.id, pid: info.id }
      if (signal?.aborted) await this.#client.call('killProcess', { params }).catch(() => {})
      throw error
    }
  }

  /** All commands of this terminal, oldest first. If there is too much output, only the newest is given. */
  async list(options: Abortable = {}): Promise<TerminalCommand[]> {
    const call = { params: this.#params, ...options }
    const { commands } = await this.#client.call('listTerminalCommands', call)
    return commands.map((info) => this.#toCommand(info))
  }

  /** Code `process_not_found` if this terminal has no such command. */
  async retrieve(commandId: string, options: Abortable = {}): Promise<TerminalCommand> {
    const params = { ...this.#params, pid: commandId }
    return this.#toCommand(await this.#client.call('getTerminalCommand', { params, ...options }))
  }

  #toCommand(info: TerminalCommandInfo): TerminalCommand {
    return new TerminalCommand(this.#client, this.#params, info)
  }
}

/** One command as the server last reported it; `refresh` and `wait` ask again. */
export class TerminalCommand {
  readonly id: string
  readonly terminalId: string
  readonly command: string
  /** ISO 8601. */
  readonly startedAt: string
  status!: 'running' | 'completed' | 'failed'
  /** Undefined while the command runs. */
  outcome: Outcome | undefined
  stdout!: string
  stderr!: string
  /** True if only the end of the output is given. */
  truncated!: boolean
  /** How many bytes were printed before the given output. */
  droppedBytes!: number
  /** Undefined while the command runs. */
  exitCode: number | undefined
  durationMs: number | undefined
  finishedAt: string | undefined
  readonly #client: Caller
  readonly #params: TerminalParams & { pid: string }

  /** For `terminal.command`. */
  constructor(client: Caller, params: TerminalParams, info: TerminalCommandInfo) {
    this.#client = client
    this.#params = { ...params, pid: info.id }
    this.id = info.id
    this.terminalId = info.terminalId
    this.command = info.command
    this.startedAt = info.startedAt
    this.#update(info)
  }

  /** Waits for the end. Code `timeout` after `timeoutSeconds` (default: 0, no limit); the command keeps running. */
  async wait(timeoutSeconds = 0, options: Abortable = {}): Promise<this> {
    const { signal } = options
    const deadline = timeoutSeconds > 0 ? performance.now() + timeoutSeconds * 1000 : Infinity
    while (this.status === 'running') {
      const leftMs = Math.ceil(deadline - performance.now())
      if (leftMs <= 0)
        throw new IsletError('timeout', `Command ${this.id} still runs after ${timeoutSeconds} s.`)
      await this.#ask({ waitMs: Math.min(leftMs, POLL_MS), signal })
    }
    return this
  }

  async refresh(options: Abortable = {}): Promise<this> {
    this.#update(await this.#client.call('getTerminalCommand', { params: this.#params, ...options }))
    return this
  }

  /** Retries while the server cannot be reached: the sandbox outlives its server. */
  async #ask({ waitMs, signal }: { waitMs: number; signal: AbortSignal | undefined }): Promise<void> {
    const deadline = performance.now() + RECONNECT_MS
    const query = { wait: waitMs }
    for (let tried = 0; ; tried++) {
      try {
        const call = { params: this.#params, query, signal }
        return this.#update(await this.#client.call('getTerminalCommand', call))
      } catch (error) {
        if (!hasCode(error, 'connection_failed') || performance.now() > deadline) throw error
        await sleep(backoffMs(tried), signal)
      }
    }
  }

  #update(info: TerminalCommandInfo): void {
    this.status = info.status
    this.outcome = info.outcome ?? undefined
    this.stdout = info.stdout
    this.stderr = info.stderr
    this.truncated = info.truncated
    this.droppedBytes = info.droppedBytes
    this.exitCode = info.exitCode ?? undefined
    this.durationMs = info.durationMs ?? undefined
    this.finishedAt = info.finishedAt ?? undefined
  }
}

guard(TerminalCommands.prototype, 'terminal.command', {
  run: [null, { background: 1, cwd: 1, env: 1, timeout: 1, keepOutput: 1, signal: 1 }],
  list: [ABORTABLE],
  retrieve: [null, ABORTABLE],
})

guard(TerminalCommand.prototype, 'command', { wait: [null, ABORTABLE], refresh: [ABORTABLE] })
