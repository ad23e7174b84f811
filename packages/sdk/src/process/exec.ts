import type { ExecResult, Outcome, ProcessInfo, ProcessOutput, StartedProcess } from '@islet/contract/client'
import { SandboxPart } from '../client/part.ts'
import { ABORTABLE, type Abortable, guard, type Names } from '../options.ts'
import { type FileToWrite, toFiles } from '../transport/files.ts'
import type { InputSource } from './input-source.ts'
import { OUTPUT, type OutputOfRun } from './output-target.ts'
import { Session } from './session.ts'
import { isStreamed, runStreamed, stdinFields } from './streamed-run.ts'

/** Text runs through `sh -c`; a list is a program and its arguments. */
export type Command = string | string[]

export interface CommandOptions extends Abortable {
  cwd?: string
  env?: Record<string, string>
  user?: string
  /** Milliseconds or '30s'; then the whole command is killed and its exit code is 124. Default: no timeout. */
  timeout?: number | string
  /**
   * How much of the end of the output is kept for `output` and `attach`. Bytes or '64Mi', up to the server's limit.
   * Default: the server's setting, 16 MiB.
   */
  keepOutput?: number | string
}

export interface CaptureOptions {
  /** The encoding of stdout and stderr in the result. Default: utf8. */
  encoding?: 'utf8' | 'base64'
  /** Limit of stdout and stderr together; the rest is cut and `truncated` is true. Default: 4 MiB. */
  maxOutputBytes?: number
}

interface GivenFiles {
  /**
   * Written before the command starts, at most 8 MiB together. If one cannot be written, the command is not started; those
   * before it stay. A relative path is below the directory of the command.
   */
  files?: readonly FileToWrite[]
}

/** With a handler or stream for its output, or a stream as stdin, the output comes while the command runs; it is in the result too. */
export interface RunOptions extends CommandOptions, CaptureOptions, OutputOfRun, GivenFiles {
  /** Text, bytes, a stream of Node or of the Web, or an iterable; default: no input. */
  stdin?: string | Uint8Array | InputSource
}

export interface AttachOptions extends Abortable {
  onStdout?(data: Uint8Array): void | Promise<void>
  onStderr?(data: Uint8Array): void | Promise<void>
  onExit?(exitCode: number): void
  onScrollbackEnd?(): void
  /** Give the kept output first. Default: true. */
  replay?: boolean
  /** Aborting closes the session and leaves the process running. */
  signal?: AbortSignal
}

export interface SpawnOptions extends CommandOptions, GivenFiles {
  /**
   * Kill the process, with everything it started, this long after the last attached client has left, unless one comes
   * back: milliseconds or '30s'. Default: it keeps running.
   */
  maxRunAfterDisconnect?: number | string
  /** The sandbox is not idle while the process runs. Default: true; false in a terminal. */
  keepAwake?: boolean
}

export interface StartOptions extends SpawnOptions, Omit<AttachOptions, 'replay' | 'signal'> {
  /** Arguments; with them the command is a program, not shell text. */
  args?: string[]
  /** Keep stdin open for sendStdin. Default: true. */
  stdin?: boolean
}

export interface ListProcessesOptions extends Abortable {
  /** `job`: in the background. Default: all. */
  kind?: ProcessInfo['kind']
  /** A status or an outcome. Default: all. */
  status?: ProcessInfo['status'] | Outcome
  /** Default: 100. */
  limit?: number
  /** Leave out this many of the newest. */
  offset?: number
}

export interface OutputOptions extends Abortable {
  encoding?: 'utf8' | 'base64'
  /** Default: 4 MiB; at most 64 MiB. */
  maxBytes?: number
}

export interface StreamUrlOptions extends Abortable {
  /** `combined`: both, in the order they came. Default: combined. */
  channel?: 'stdout' | 'stderr' | 'combined'
  /** Milliseconds, or like '30m'; at most 7 days. Default: 24 hours. */
  expiresIn?: number | string
}

export class Exec extends SandboxPart {
  /**
   * Runs a command to its end; aborting kills it. A command that fails is a result; one that could not be started is an error.
   */
  async run(command: Command, options: RunOptions = {}): Promise<ExecResult> {
    const { params } = this
    const { streams, body, signal } = await split(command, options)
    if (!streams) return this.client.call('exec', { params, body, signal })
    const { sandboxId, ...result } = await runStreamed(this.client, 'exec', { params, body }, streams)
    return result
  }

  /** Starts a command and attaches to it. */
  async start(command: Command, options: StartOptions = {}): Promise<ExecSession> {
    const {
      args,
      stdin = true,
      files,
      onStdout,
      onStderr,
      onExit,
      onScrollbackEnd,
      signal,
      ...rest
    } = options
    const argv = args ? [...(typeof command === 'string' ? [command] : command), ...args] : command
    const body = { command: argv, ...rest, stdin, hold: true, files: await toFiles(files, signal) }
    const { id } = await this.client.call('startProcess', { params: this.params, body, signal })
    return this.attach(id, { onStdout, onStderr, onExit, onScrollbackEnd, signal })
  }

  /** Starts a command without attaching; `attach` follows it later. */
  async spawn(command: Command, options: SpawnOptions = {}): Promise<StartedProcess> {
    const { signal, files, ...rest } = options
    const body = { command, ...rest, files: await toFiles(files, signal) }
    return this.client.call('startProcess', { params: this.params, body, signal })
  }

  /** Attaches to a process that runs or has ended: gives the kept output, then live output. */
  async attach(processId: string, options: AttachOptions = {}): Promise<ExecSession> {
    const { onStdout, onStderr, onExit, onScrollbackEnd, replay, signal } = options
    const handlers = {
      onOutput: (channel: string, bytes: Uint8Array) =>
        channel === 'stderr' ? onStderr?.(bytes) : onStdout?.(bytes),
      onReplayEnd: onScrollbackEnd,
      onExit: ({ exitCode }: { exitCode: number }) => onExit?.(exitCode),
    }
    return ExecSession.open(this.client, this.params.id, processId, handlers, { replay, signal })
  }

  /** Newest first. */
  async list(options: ListProcessesOptions = {}): Promise<ProcessInfo[]> {
    const { signal, ...query } = options
    return (await this.client.call('listProcesses', { params: this.params, query, signal })).processes
  }

  get(processId: string, options: Abortable = {}): Promise<ProcessInfo> {
    return this.client.call('getProcess', { params: this.#of(processId), ...options })
  }

  /** The end of the kept output of a process, at most `maxBytes` of it. */
  output(processId: string, options: OutputOptions = {}): Promise<ProcessOutput> {
    const { signal, ...query } = options
    return this.client.call('processOutput', { params: this.#of(processId), query, signal })
  }

  /**
   * A URL that gives the output of a process as bytes and needs no key: what is kept of it, then what comes until the process ends. A
   * reader whose connection broke adds `&offset=` and the number of bytes that it has.
   */
  async streamUrl(processId: string, options: StreamUrlOptions = {}): Promise<string> {
    const { signal, ...body } = options
    return (await this.client.call('signOutput', { params: this.#of(processId), body, signal })).url
  }

  /** Signals a process and its whole session; SIGKILL, the default, ends everything that it started. */
  async kill(
    processId: string,
    signalName: string | number = 'SIGKILL',
    options: Abortable = {},
  ): Promise<void> {
    const body = { signal: signalName }
    await this.client.call('signalProcess', { params: this.#of(processId), body, ...options })
  }

  #of(processId: string): { id: string; pid: string } {
    return { ...this.params, pid: processId }
  }
}

export class ExecSession extends Session {
  /** Resolves when there is room for more. Code `invalid_state` once the process has ended. */
  sendStdin(data: string | Uint8Array): Promise<void> {
    return this.write(data)
  }

  closeStdin(): void {
    this.tell({ type: 'stdin-end' })
  }

  /** Leaves the process running. */
  close(): void {
    this.leave()
  }
}

/** In place of the result of a command that goes on in the background. */
export const STARTED = {
  outcome: 'completed',
  exitCode: 0,
  signal: null,
  timedOut: false,
  oom: false,
  durationMs: 0,
  stdout: '',
  stderr: '',
  truncated: false,
  droppedBytes: 0,
} as const

/** The body of a call that runs a command; `streams`, if its output comes as it is printed. */
export async function split<Options extends RunOptions>(command: Command, options: Options) {
  const { signal, stdin, encoding, maxOutputBytes, onStdout, onStderr, stdout, stderr, files, ...rest } =
    options
  const body = { command, ...rest, files: await toFiles(files, signal) }
  const streams = { signal, stdin, encoding, maxOutputBytes, onStdout, onStderr, stdout, stderr }
  if (isStreamed(streams)) return { streams, body, signal }
  return { body: { ...body, encoding, maxOutputBytes, ...stdinFields(stdin) }, signal }
}

export const COMMAND: Names<CommandOptions> = {
  cwd: 1,
  env: 1,
  user: 1,
  timeout: 1,
  keepOutput: 1,
  signal: 1,
}
export const CAPTURE: Names<CaptureOptions> = { encoding: 1, maxOutputBytes: 1 }
export const RUN: Names<RunOptions> = { ...COMMAND, ...CAPTURE, ...OUTPUT, stdin: 1, files: 1 }
export const SPAWN: Names<SpawnOptions> = { ...COMMAND, maxRunAfterDisconnect: 1, keepAwake: 1, files: 1 }
const HANDLERS = { onStdout: 1, onStderr: 1, onExit: 1, onScrollbackEnd: 1 } as const

guard(Exec.prototype, 'sandbox.exec', {
  run: [null, RUN],
  start: [null, { ...SPAWN, ...HANDLERS, args: 1, stdin: 1 }],
  spawn: [null, SPAWN],
  attach: [null, { ...HANDLERS, replay: 1, signal: 1 }],
  list: [{ kind: 1, status: 1, limit: 1, offset: 1, signal: 1 }],
  get: [null, ABORTABLE],
  output: [null, { encoding: 1, maxBytes: 1, signal: 1 }],
  streamUrl: [null, { channel: 1, expiresIn: 1, signal: 1 }],
  kill: [null, null, ABORTABLE],
})
