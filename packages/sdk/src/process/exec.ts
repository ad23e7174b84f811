import type { ExecResult, ProcessInfo, ProcessOutput, StartedProcess } from '@islet/contract/client'
import type { Client } from '../client/client.ts'
import { ABORTABLE, guard, type Names } from '../options.ts'
import { base64 } from '../transport/body.ts'
import { ProcessSession } from './process-session.ts'
import { Session } from './session.ts'

/** Text runs through `sh -c`; a list is a program and its arguments. */
export type Command = string | string[]

export interface CommandOptions {
  cwd?: string
  env?: Record<string, string>
  user?: string
  /** Milliseconds or '30s'; the whole command is killed then, and its exit code is 124. Default: never. */
  timeout?: number | string
  /**
   * How much of its output is kept for `output` and `attach`: its end. Bytes or '64Mi', up to what the server allows.
   * Default: what the server is set to, 16 MiB.
   */
  keepOutput?: number | string
  signal?: AbortSignal
}

export interface RunOptions extends CommandOptions {
  stdin?: string | Uint8Array
  /** How stdout and stderr are given. Default: utf8. */
  encoding?: 'utf8' | 'base64'
  /** Of stdout and stderr together; more is cut and `truncated` is true. Default: 4 MiB. */
  maxOutputBytes?: number
}

export interface AttachOptions {
  onStdout?(data: Uint8Array): void | Promise<void>
  onStderr?(data: Uint8Array): void | Promise<void>
  onExit?(exitCode: number): void
  onScrollbackEnd?(): void
  /** Give what is kept of the output first. Default: true. */
  replay?: boolean
  /** Aborting closes the session and leaves the process running. */
  signal?: AbortSignal
}

export interface SpawnOptions extends CommandOptions {
  /**
   * Kill it, with all it started, this long after the last client that was attached has left, unless one comes back:
   * milliseconds or '30s'. Default: it runs on.
   */
  maxRunAfterDisconnect?: number | string
  /** The sandbox is not idle while it runs. Default: true; false in a terminal. */
  keepAwake?: boolean
}

export interface StartOptions extends SpawnOptions, Omit<AttachOptions, 'replay' | 'signal'> {
  /** Arguments; the command is a program then, not shell text. */
  args?: string[]
  /** Keep stdin open for sendStdin. Default: true. */
  stdin?: boolean
}

export class Exec {
  readonly #client: Client
  readonly #sandboxId: string

  constructor(client: Client, sandboxId: string) {
    this.#client = client
    this.#sandboxId = sandboxId
  }

  /** Runs a command to its end. A command that fails is a result; one that never ran is an error. */
  run(command: Command, options: RunOptions = {}): Promise<ExecResult> {
    const { signal, ...rest } = options
    const body = { command, ...rest, ...stdinFields(options.stdin) }
    return this.#client.call('exec', { params: { id: this.#sandboxId }, body, signal })
  }

  /** Starts a command and follows it. */
  async start(command: Command, options: StartOptions = {}): Promise<ExecSession> {
    const {
      args,
      cwd,
      env,
      user,
      timeout,
      maxRunAfterDisconnect,
      keepAwake,
      keepOutput,
      stdin = true,
      signal,
      ...handlers
    } = options
    const argv = args ? [...(typeof command === 'string' ? [command] : command), ...args] : command
    const process = await this.#client.call('startProcess', {
      params: { id: this.#sandboxId },
      body: {
        command: argv,
        cwd,
        env,
        user,
        timeout,
        keepOutput,
        maxRunAfterDisconnect,
        keepAwake,
        stdin,
        hold: true,
      },
      signal,
    })
    return this.attach(process.id, { ...handlers, signal })
  }

  /** Starts a command and leaves it alone; `attach` follows it later. */
  spawn(command: Command, options: SpawnOptions = {}): Promise<StartedProcess> {
    const { signal, ...body } = options
    return this.#client.call('startProcess', {
      params: { id: this.#sandboxId },
      body: { command, ...body },
      signal,
    })
  }

  /** Follows a process that runs or ran: what is kept of its output, then what comes. */
  async attach(processId: string, options: AttachOptions = {}): Promise<ExecSession> {
    const { onStdout, onStderr, onExit, onScrollbackEnd, replay, signal } = options
    const session = await Session.open(
      this.#client,
      this.#sandboxId,
      processId,
      {
        onOutput: (channel, bytes) => (channel === 'stderr' ? onStderr?.(bytes) : onStdout?.(bytes)),
        onReplayEnd: onScrollbackEnd,
        onExit: (result) => onExit?.(result.exitCode),
      },
      { replay, signal },
    )
    return new ExecSession(session, (name) => this.kill(processId, name))
  }

  /** Newest first. */
  async list(
    options: { status?: ProcessInfo['status']; limit?: number; signal?: AbortSignal } = {},
  ): Promise<ProcessInfo[]> {
    const { signal, ...query } = options
    const params = { id: this.#sandboxId }
    return (await this.#client.call('listProcesses', { params, query, signal })).processes
  }

  get(processId: string, options: { signal?: AbortSignal } = {}): Promise<ProcessInfo> {
    return this.#client.call('getProcess', { params: this.#params(processId), ...options })
  }

  /** What is kept of the output of a process: its end, at most `maxBytes` of it (default: 4 MiB, at most 64 MiB). */
  output(
    processId: string,
    options: { encoding?: 'utf8' | 'base64'; maxBytes?: number; signal?: AbortSignal } = {},
  ): Promise<ProcessOutput> {
    const { signal, ...query } = options
    return this.#client.call('processOutput', { params: this.#params(processId), query, signal })
  }

  /** Signals a process and its whole session; SIGKILL, the default, ends all that it started. */
  async kill(
    processId: string,
    signalName: string | number = 'SIGKILL',
    options: { signal?: AbortSignal } = {},
  ): Promise<void> {
    const body = { signal: signalName }
    await this.#client.call('signalProcess', { params: this.#params(processId), body, ...options })
  }

  #params(processId: string): { id: string; pid: string } {
    return { id: this.#sandboxId, pid: processId }
  }
}

export class ExecSession extends ProcessSession {
  /** Some output was printed but could not be given. */
  get truncated(): boolean {
    return this.session.truncated
  }

  /** How much that was. */
  get droppedBytes(): number {
    return this.session.droppedBytes
  }

  /** Resolves when there is room for more. Code `invalid_state` once the process has ended. */
  sendStdin(data: string | Uint8Array): Promise<void> {
    return this.session.sendStdin(data)
  }

  closeStdin(): void {
    this.session.closeStdin()
  }

  /** Leaves the process running. */
  close(): void {
    this.session.close()
  }
}

function stdinFields(stdin: string | Uint8Array | undefined) {
  if (stdin === undefined || typeof stdin === 'string') return { stdin }
  return { stdin: base64(stdin), stdinEncoding: 'base64' as const }
}

export const COMMAND: Names<CommandOptions> = {
  cwd: 1,
  env: 1,
  user: 1,
  timeout: 1,
  keepOutput: 1,
  signal: 1,
}
export const RUN: Names<RunOptions> = { ...COMMAND, stdin: 1, encoding: 1, maxOutputBytes: 1 }
export const SPAWN: Names<SpawnOptions> = { ...COMMAND, maxRunAfterDisconnect: 1, keepAwake: 1 }
const HANDLERS = { onStdout: 1, onStderr: 1, onExit: 1, onScrollbackEnd: 1 } as const

guard(Exec.prototype, 'sandbox.exec', {
  run: [null, RUN],
  start: [null, { ...SPAWN, ...HANDLERS, args: 1, stdin: 1 }],
  spawn: [null, SPAWN],
  attach: [null, { ...HANDLERS, replay: 1, signal: 1 }],
  list: [{ status: 1, limit: 1, signal: 1 }],
  get: [null, ABORTABLE],
  output: [null, { encoding: 1, maxBytes: 1, signal: 1 }],
  kill: [null, null, ABORTABLE],
})
