// The commands of a terminal without a pty.
import { IsletError, type TerminalCommandInfo } from '@islet/contract/client'
import type { Client } from '../client/client.ts'
import { hasCode } from '../errors.ts'
import { ABORTABLE, guard } from '../options.ts'
import { backoffMs, sleep } from '../transport/retry.ts'

export interface TerminalCommandOptions {
  /** Answer at once and leave the command running. Default: false. */
  background?: boolean
  /** Relative to the working directory of the terminal. */
  cwd?: string
  /** Added to the environment of the terminal. */
  env?: Record<string, string>
  /**
   * Milliseconds or '30s'; the whole command is killed then, and its exit code is 124. 0: never. Default: the execution
   * timeout of the sandbox, also in the background.
   */
  timeout?: number | string
  /** How much of its output is kept: bytes or '64Mi'. Default: what the server is set to, 16 MiB. */
  keepOutput?: number | string
  /** Aborting kills a command in the foreground. */
  signal?: AbortSignal
}

interface Abortable {
  signal?: AbortSignal
}

type Caller = Pick<Client, 'call'>

type TerminalParams = {
  id: string
  tid: string
}

/** How long one request waits for the end of a command, and how long a lost server is waited for. */
const POLL_MS = 30_000
const RECONNECT_MS = 30_000

export class TerminalCommands {
  readonly #client: Caller
  readonly #params: TerminalParams

  constructor(client: Caller, params: TerminalParams) {
    this.#client = client
    this.#params = params
  }

  /** Shell text. Resolves with its result, or with `background` as soon as it runs. */
  async run(command: string, options: TerminalCommandOptions = {}): Promise<TerminalCommand> {
    const { background, signal, ...rest } = options
    const body = { command, ...rest, background: true }
    signal?.throwIfAborted()
    // Not given up while it is being started: whoever aborts a command in the foreground wants it killed, by its id.
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

  /** All that ran in this terminal, oldest first. Of very much output only the newest is given. */
  async list(options: Abortable = {}): Promise<TerminalCommand[]> {
    const { commands } = await this.#client.call('listTerminalCommands', {
      params: this.#params,
      ...options,
    })
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

/** One command as last heard; `refresh` and `wait` ask again. */
export class TerminalCommand {
  readonly id: string
  readonly terminalId: string
  readonly command: string
  /** ISO 8601. */
  readonly startedAt: string
  status!: 'running' | 'completed' | 'failed'
  stdout!: string
  stderr!: string
  /** Only the end of the output is given. */
  truncated!: boolean
  /** How much was printed before it. */
  droppedBytes!: number
  /** Undefined while it runs. */
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

  /** Until it ends, or code `timeout` after so many seconds, and the command goes on. Default: 0, no limit. */
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

  /** The sandbox outlives its server: one that is away is waited for. */
  async #ask({ waitMs, signal }: { waitMs: number; signal: AbortSignal | undefined }): Promise<void> {
    const deadline = performance.now() + RECONNECT_MS
    const query = { wait: waitMs }
    for (let tried = 0; ; tried++) {
      try {
        return this.#update(
          await this.#client.call('getTerminalCommand', { params: this.#params, query, signal }),
        )
      } catch (error) {
        if (!hasCode(error, 'connection_failed') || performance.now() > deadline) throw error
        await sleep(backoffMs(tried), signal)
      }
    }
  }

  #update(info: TerminalCommandInfo): void {
    this.status = info.status
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
