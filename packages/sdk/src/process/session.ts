// One client of one process: replay, then live output; stdin, resize.
//
//   server: {start} (output) {replay-end} output ... {exit} or {error}     client: stdin bytes, {resize}, {stdin-end}
//
// `start` says at which byte of the output the replay begins, so every byte reaches the caller once, also when the
// connection breaks and is made again.
import {
  type AttachServerMessage,
  attachServerMessageShape,
  IsletError,
  LIMITS,
  type Outcome,
  type ProcessInfo,
} from '@islet/contract/client'
import { checkedMessage } from '../client/checked.ts'
import type { Client } from '../client/client.ts'
import { Connection } from '../client/connection.ts'
import { deferred } from '../client/deferred.ts'
import { abortError, errorFromBody } from '../errors.ts'
import type { Abortable } from '../options.ts'
import { sleep } from '../transport/retry.ts'
import { OutputCursor, type OutputHandler } from './output-cursor.ts'

export type ProcessResult = NonNullable<ProcessInfo['result']> & { outcome: Outcome }

export interface SessionHandlers {
  /** A returned promise delays the next call, and pauses the program if the WebSocket can be paused. */
  onOutput?: OutputHandler
  /** Output before the next output is lost: the server does not keep it any more. */
  onGap?(): void
  onReplayEnd?(): void
  onExit?(result: ProcessResult): void
}

const RECONNECT_MS = 30_000
const SEND_HIGH_BYTES = 1024 * 1024
const SEND_POLL_MS = 5
const STDIN_CHUNK_BYTES = 64 * 1024

/** The common part of ExecSession and PtySession. */
export abstract class Session {
  readonly processId: string
  /** The exit code. Rejects if the session is closed, or the sandbox ends, before the process does. */
  readonly done: Promise<number>
  /** How the process ended: exit code, signal, timedOut, oom, durationMs. */
  readonly result: Promise<ProcessResult>
  readonly #client: Client
  readonly #params: { id: string; pid: string }
  readonly #handlers: SessionHandlers
  readonly #outcome = deferred<ProcessResult>()
  readonly #output: OutputCursor
  readonly #connection: Connection
  #process: ProcessInfo | undefined
  #result: ProcessResult | undefined
  #sending = Promise.resolve()
  #isLiveOnly = false
  #isReplayed = false

  static async open<Kind extends Session>(
    this: new (
      client: Client,
      sandboxId: string,
      processId: string,
      handlers: SessionHandlers,
    ) => Kind,
    client: Client,
    sandboxId: string,
    processId: string,
    handlers: SessionHandlers,
    { replay, signal }: { replay?: boolean } & Abortable = {},
  ): Promise<Kind> {
    if (signal?.aborted) throw abortError(signal)
    const session = new this(client, sandboxId, processId, handlers)
    const leave = () => session.#connection.end(abortError(signal))
    signal?.addEventListener('abort', leave, { once: true })
    const release = () => signal?.removeEventListener('abort', leave)
    session.result.then(release, release)
    session.#isLiveOnly = replay === false
    await session.#connection.open()
    return session
  }

  /** For `open`. */
  constructor(client: Client, sandboxId: string, processId: string, handlers: SessionHandlers) {
    this.processId = processId
    this.#client = client
    this.#params = { id: sandboxId, pid: processId }
    this.#handlers = handlers
    this.#output = new OutputCursor((channel, bytes) => handlers.onOutput?.(channel, bytes))
    this.result = this.#outcome.promise
    this.done = this.result.then(({ exitCode }) => exitCode)
    // Awaiting these promises is optional, so a rejection must not be unhandled.
    this.result.catch(() => {})
    this.done.catch(() => {})
    this.#connection = new Connection(client, 'attachProcess', {
      params: this.#params,
      query: () => ({ replay: !this.#isLiveOnly || this.#process !== undefined }),
      reconnectMs: RECONNECT_MS,
      onFrame: (data, onStart) => this.#receive(data, onStart),
      onEnd: (error) => (this.#result ? this.#outcome.resolve(this.#result) : this.#outcome.reject(error)),
      whyNot: () => client.call('getProcess', { params: this.#params }),
    })
  }

  /** The same as `processId`. */
  get sessionId(): string {
    return this.processId
  }

  /** The process as it was when the connection was (last) made. */
  get process(): ProcessInfo {
    return this.#process!
  }

  /** Signals the process and its whole session; SIGKILL, the default, ends everything that it started. */
  async kill(signal?: string | number): Promise<void> {
    await this.#client.call('signalProcess', { params: this.#params, body: { signal } })
  }

  /** Bytes of output that could not be given: the server does not keep them any more. */
  get droppedBytes(): number {
    return this.#output.droppedBytes
  }

  /** Whether `droppedBytes` is more than 0. */
  get truncated(): boolean {
    return this.droppedBytes > 0
  }

  /** Resolves when there is room for more. Code `invalid_state` once the process has ended or the session is closed. */
  protected write(data: string | Uint8Array): Promise<void> {
    const written = this.#write(data)
    // Awaiting it is optional, as with `done`.
    written.catch(() => {})
    return written
  }

  async #write(data: string | Uint8Array): Promise<void> {
    const bytes = typeof data === 'string' ? new TextEncoder().encode(data) : data
    for (let at = 0; at < bytes.length; at += STDIN_CHUNK_BYTES) {
      await this.#send(bytes.slice(at, at + STDIN_CHUNK_BYTES))
    }
  }

  /** Tells the server something that does not matter any more once the process has ended. */
  protected tell(message: { type: 'stdin-end' } | { type: 'resize'; cols: number; rows: number }): void {
    this.#send(JSON.stringify(message)).catch(() => {})
  }

  /** Leaves the process running; `result` rejects with an AbortError if the process has not ended. */
  protected leave(): void {
    this.#connection.end(abortError())
  }

  /** Sends in order. Waits while the connection is full or broken. */
  #send(data: string | Uint8Array<ArrayBuffer>): Promise<void> {
    this.#sending = this.#sending.then(async () => {
      while (!this.#connection.isOver && !this.#hasRoom()) await sleep(SEND_POLL_MS)
      if (this.#connection.isOver) throw this.#overError()
      this.#connection.send(data)
    })
    return this.#sending
  }

  #hasRoom(): boolean {
    const { bufferedBytes } = this.#connection
    return bufferedBytes !== undefined && bufferedBytes <= SEND_HIGH_BYTES
  }

  #overError(): IsletError {
    const { processId } = this
    if (this.#result)
      return new IsletError('invalid_state', `Process ${processId} has ended; it takes no input any more.`)
    return new IsletError(
      'invalid_state',
      `This session of process ${processId} is closed; nothing was sent.`,
      {
        hint: 'Attach again to send more.',
      },
    )
  }

  #receive(data: unknown, onStart: () => void): void | Promise<void> {
    if (typeof data !== 'string') {
      const frame = new Uint8Array(data as ArrayBuffer)
      return this.#output.output(frame[0] === 2 ? 'stderr' : 'stdout', frame.subarray(1))
    }
    const message = checkedMessage<AttachServerMessage>(attachServerMessageShape, data)
    if (message === undefined) return
    if (message.type === 'start') {
      this.#start(message)
      onStart()
    } else if (message.type === 'replay-end') {
      if (!this.#isReplayed) this.#handlers.onReplayEnd?.()
      this.#isReplayed = true
    } else if (message.type === 'exit') {
      const { type, ...result } = message
      this.#handlers.onExit?.(result)
      this.#result = result
      this.#connection.end()
    } else this.#connection.end(errorFromBody(message.error))
  }

  #start({ process, droppedBytes }: Extract<AttachServerMessage, { type: 'start' }>): void {
    const isLiveOnly = this.#isLiveOnly && this.#process === undefined
    this.#process = process
    const known = this.droppedBytes
    this.#output.begin(isLiveOnly ? process.outputBytes : droppedBytes, { isLiveOnly })
    if (this.droppedBytes > known) this.#handlers.onGap?.()
  }
}

/** The server closes the connection of a client that asks for an impossible size. */
export function checkedSize(cols: number, rows: number): { cols: number; rows: number } {
  if ([cols, rows].every((side) => Number.isInteger(side) && side >= 1 && side <= LIMITS.terminalSide))
    return { cols, rows }
  throw new IsletError('bad_request', `A terminal cannot have ${cols} columns and ${rows} rows.`, {
    hint: `Both are whole numbers from 1 to ${LIMITS.terminalSide}.`,
  })
}
