import {
  type AttachOptions,
  type Names,
  type ExecSession as NativeSession,
  type ProcessInfo,
  refuseUnknown,
  type Sandbox,
} from '@islet/sdk'
import { failing, quiet, seconds } from './failed.ts'

export interface RunOpts {
  /** Seconds; then the whole command is killed and its exit code is 124. 0: never. Default: 60. */
  timeout?: number
  env?: Record<string, string>
  cwd?: string
  /** Aborting kills the command. */
  signal?: AbortSignal
}

export interface ProcessResult {
  exitCode: number
  stdout: string
  stderr: string
  timedOut: boolean
  /** True if the command printed more than 64 MiB: the rest is missing. */
  truncated: boolean
}

export interface ExecAttachOpts {
  onStdout?: (data: Uint8Array) => void
  onStderr?: (data: Uint8Array) => void
  /** -1 if the session ends before the command does. */
  onExit?: (exitCode: number) => void
  onScrollbackEnd?: () => void
}

export interface ExecStartOpts extends ExecAttachOpts {
  /** With them, the command is a program; without, it is shell text. */
  args?: string[]
  env?: Record<string, string>
  cwd?: string
  /** Seconds; then the command is killed. Default: never. */
  timeout?: number
  /** Seconds until the command is killed once its last client has left. 0 or absent: it keeps running. */
  maxRunAfterDisconnect?: number
}

export interface ExecSession {
  readonly sessionId: string
  /** The exit code, or -1 if the session ends before the command does. */
  readonly done: Promise<number>
  /** Awaiting it is optional. */
  sendStdin(data: string | Uint8Array): Promise<void>
  /** Default: 9, SIGKILL. */
  kill(signal?: number): Promise<void>
  /** Leaves the command running. */
  close(): void
}

export interface ExecSessionInfo {
  sessionID: string
  sandboxID: string
  command: string
  args: string[]
  running: boolean
  /** Absent while it runs. */
  exitCode?: number
  startedAt: string
}

const SIGKILL = 9
const MAX_OUTPUT_BYTES = 64 * 1024 * 1024
const MOST_LISTED = 1000

const RUN: Names<RunOpts> = { timeout: 1, env: 1, cwd: 1, signal: 1 }
const ATTACH: Names<ExecAttachOpts> = { onStdout: 1, onStderr: 1, onExit: 1, onScrollbackEnd: 1 }
const START: Names<ExecStartOpts> = {
  ...ATTACH,
  args: 1,
  env: 1,
  cwd: 1,
  timeout: 1,
  maxRunAfterDisconnect: 1,
}

export class Exec {
  readonly #native: Sandbox

  constructor(native: Sandbox) {
    this.#native = native
  }

  async run(command: string, opts: RunOpts = {}): Promise<ProcessResult> {
    refuseUnknown('sandbox.exec.run', opts, RUN)
    const { timeout = 60, ...rest } = opts
    const ran = this.#native.exec.run(command, {
      ...rest,
      timeout: seconds(timeout, 'timeout'),
      maxOutputBytes: MAX_OUTPUT_BYTES,
    })
    const { exitCode, stdout, stderr, timedOut, truncated } = await failing('Failed to run command', ran)
    return { exitCode, stdout, stderr, timedOut, truncated }
  }

  async start(command: string, opts: ExecStartOpts = {}): Promise<ExecSession> {
    refuseUnknown('sandbox.exec.start', opts, START)
    const { args = [], env, cwd, timeout, maxRunAfterDisconnect, ...handlers } = opts
    const started = this.#native.exec.start(command, {
      args: args.length > 0 ? args : undefined,
      env,
      cwd,
      timeout: timeout === undefined ? undefined : seconds(timeout, 'timeout'),
      maxRunAfterDisconnect: maxRunAfterDisconnect
        ? seconds(maxRunAfterDisconnect, 'maxRunAfterDisconnect')
        : undefined,
      ...handlers,
    })
    return toSession(await failing('Failed to create exec session', started), opts)
  }

  async attach(sessionId: string, opts: ExecAttachOpts = {}): Promise<ExecSession> {
    refuseUnknown('sandbox.exec.attach', opts, ATTACH)
    const handlers: AttachOptions = opts
    const attached = this.#native.exec.attach(sessionId, handlers)
    return toSession(await failing('WebSocket connection failed', attached), opts)
  }

  /** Newest first, ended ones too. */
  async list(): Promise<ExecSessionInfo[]> {
    const all = this.#native.exec.list({ limit: MOST_LISTED })
    return (await failing('Failed to list exec sessions', all)).filter(isSession).map(toInfo)
  }

  async kill(sessionId: string, signal = SIGKILL): Promise<void> {
    await failing('Failed to kill exec session', this.#native.exec.kill(sessionId, signal))
  }
}

function toSession(native: NativeSession, { onExit }: ExecAttachOpts): ExecSession {
  const lost = (): number => {
    onExit?.(-1)
    return -1
  }
  return {
    sessionId: native.sessionId,
    done: native.done.catch(lost),
    sendStdin: (data) => native.sendStdin(data),
    kill: (signal = SIGKILL) => quiet(failing('Failed to kill exec session', native.kill(signal))),
    close: () => native.close(),
  }
}

/** Processes of terminals and services are not sessions of `exec`. */
function isSession({ terminal, terminalId, service }: ProcessInfo): boolean {
  return !terminal && terminalId === null && service === null
}

function toInfo({ id, sandboxId, command, status, result, startedAt }: ProcessInfo): ExecSessionInfo {
  const [program = '', ...args] = typeof command === 'string' ? [command] : command
  return {
    sessionID: id,
    sandboxID: sandboxId,
    command: program,
    args,
    running: status === 'running',
    ...(status !== 'running' && { exitCode: result?.exitCode ?? -1 }),
    startedAt,
  }
}
