// One client of one process: replay, then live output, stdin, resize.
//
//   server: {start} (output) {replay-end} output ... {exit} or {error}     client: stdin bytes, {resize}, {stdin-end}
//
// A connection that breaks while the process runs is opened again: the sandbox outlives the server. `start` tells how
// much the process had printed when the replay was taken, so every byte is given to the caller once.
import {
  type AttachServerMessage,
  attachServerMessageShape,
  IsletError,
  LIMITS,
  type ProcessInfo,
} from '@islet/contract/client'
import { checkedMessage } from '../client/checked.ts'
import type { Client } from '../client/client.ts'
import { deferred } from '../client/deferred.ts'
import { abortError, ClientError, errorFromBody } from '../errors.ts'
import { Inbox } from '../transport/inbox.ts'
import { backoffMs, sleep } from '../transport/retry.ts'
import type { Socket } from '../transport/socket.ts'
import { OutputCursor, type OutputHandler } from './output-cursor.ts'

export type ProcessResult = NonNullable<ProcessInfo['result']>

export interface SessionHandlers {
  /** A promise holds back the next call, and where the WebSocket can be paused, the program. */
  onOutput?: OutputHandler
  onReplayEnd?(): void
  onExit?(result: ProcessResult): void
}

const RECONNECT_MS = 30_000
const SEND_HIGH_BYTES = 1024 * 1024
const SEND_POLL_MS = 5
const STDIN_CHUNK_BYTES = 64 * 1024

export class Session {
  readonly result: Promise<ProcessResult>
  /** As it was at the (last) start of the connection. */
  process!: ProcessInfo
  readonly #client: Client
  readonly #params: { id: string; pid: string }
  readonly #handlers: SessionHandlers
  readonly #outcome = deferred<ProcessResult>()
  #socket: Socket | undefined
  #sending = Promise.resolve()
  #isOpen = false
  #isOver = false
  #hasEnded = false
  #isLiveOnly = false
  #isReplayed = false
  readonly #output: OutputCursor

  static async open(
    client: Client,
    sandboxId: string,
    processId: string,
    handlers: SessionHandlers,
    options: { replay?: boolean; signal?: AbortSignal } = {},
  ): Promise<Session> {
    const session = new Session(client, sandboxId, processId, handlers)
    const { signal } = options
    if (signal?.aborted) throw abortError(signal)
    const leave = () => session.#finish(abortError(signal))
    signal?.addEventListener('abort', leave, { once: true })
    const release = () => signal?.removeEventListener('abort', leave)
    session.result.then(release, release)
    session.#isLiveOnly = options.replay === false
    await session.#connect({ replay: options.replay })
    return session
  }

  private constructor(client: Client, sandboxId: string, processId: string, handlers: SessionHandlers) {
    this.#client = client
    this.#params = { id: sandboxId, pid: processId }
    this.#handlers = handlers
    this.#output = new OutputCursor((channel, bytes) => handlers.onOutput?.(channel, bytes))
    this.result = this.#outcome.promise
    this.result.catch(() => {}) // whoever wants to know awaits it
  }

  /** How much was printed that could not be given, because it is not kept any more. */
  get droppedBytes(): number {
    return this.#output.droppedBytes
  }

  /** Output was lost: it was printed before this client came, and is not kept any more. */
  get truncated(): boolean {
    return this.#output.droppedBytes > 0
  }

  /** Resolves when there is room for more. Code `invalid_state` once the process has ended or this session is closed. */
  async sendStdin(data: string | Uint8Array): Promise<void> {
    const bytes = typeof data === 'string' ? new TextEncoder().encode(data) : data
    for (let at = 0; at < bytes.length; at += STDIN_CHUNK_BYTES) {
      await this.#send(bytes.slice(at, at + STDIN_CHUNK_BYTES))
    }
  }

  closeStdin(): void {
    this.#tell({ type: 'stdin-end' })
  }

  /** The server would end the connection of a client that asks for an impossible size. */
  resize(cols: number, rows: number): void {
    if (![cols, rows].every((side) => Number.isInteger(side) && side >= 1 && side <= LIMITS.terminalSide))
      throw new IsletError('bad_request', `A terminal does not have ${cols} columns and ${rows} rows.`)
    this.#tell({ type: 'resize', cols, rows })
  }

  /** Leaves the process running; `result` rejects with an AbortError if it had not ended. */
  close(): void {
    this.#finish(abortError())
  }

  /** What means nothing any more once the process has ended. */
  #tell(message: object): void {
    this.#send(JSON.stringify(message)).catch(() => {})
  }

  /** One after the other; waits while the connection is full or being made again. */
  #send(data: string | Uint8Array<ArrayBuffer>): Promise<void> {
    this.#sending = this.#sending.then(async () => {
      while (!this.#isOver && !this.#hasRoom()) await sleep(SEND_POLL_MS)
      if (this.#isOver) throw this.#overError()
      this.#socket?.send(data)
    })
    return this.#sending
  }

  #overError(): IsletError {
    const { pid } = this.#params
    if (this.#hasEnded)
      return new IsletError('invalid_state', `Process ${pid} has ended; it takes no input any more.`)
    return new IsletError('invalid_state', `This session of process ${pid} is closed; nothing was sent.`, {
      hint: 'Attach again to send more.',
    })
  }

  #hasRoom(): boolean {
    return this.#isOpen && (this.#socket?.bufferedAmount ?? 0) <= SEND_HIGH_BYTES
  }

  /** Resolves with the first `start`; later connections of the same session are made by #reconnect. */
  async #connect(query: { replay?: boolean | undefined }, isSecond = false): Promise<void> {
    await Promise.race([this.#client.ready(), this.result])
    const opened = deferred<void>()
    const socket = this.#client.socket('attachProcess', { params: this.#params, query })
    const inbox = new Inbox(socket, (data) => this.#receive(data, opened.resolve))
    this.#socket = socket
    socket.onmessage = ({ data }) => inbox.push(data)
    socket.onerror = () => {} // a close follows
    socket.onclose = async ({ reason }) => {
      this.#isOpen = false
      await inbox.drained()
      if (this.#isOver) return opened.reject(abortError())
      const lost = new ClientError('connection_failed', `The connection broke${reason && ` (${reason})`}.`)
      if (inbox.failure !== undefined) this.#finish(inbox.failure)
      else if (!inbox.isEmpty) void this.#reconnect(lost)
      opened.reject(inbox.failure ?? lost)
    }
    this.result.catch(opened.reject)
    return opened.promise.catch(async (error) => {
      const ask = () => this.#client.call('getProcess', { params: this.#params })
      if (!(error instanceof ClientError) || !(await this.#client.renewedBy(ask)) || isSecond) throw error
      return this.#connect(query, true)
    })
  }

  async #reconnect(lost: ClientError): Promise<void> {
    const deadline = Date.now() + RECONNECT_MS
    for (let tried = 0; !this.#isOver; tried++) {
      await sleep(backoffMs(tried))
      if (this.#isOver) return
      try {
        return await this.#connect({ replay: true })
      } catch (error) {
        const isGone = !(error instanceof ClientError)
        if (isGone || Date.now() > deadline) return this.#finish(isGone ? error : lost)
      }
    }
  }

  #receive(data: unknown, onStart: () => void): void | Promise<void> {
    if (this.#isOver) return
    if (typeof data !== 'string') {
      const frame = new Uint8Array(data as ArrayBuffer)
      return this.#output.output(frame[0] === 2 ? 'stderr' : 'stdout', frame.subarray(1))
    }
    const message = checkedMessage<AttachServerMessage>(attachServerMessageShape, data)
    if (message === undefined) return
    if (message.type === 'start') {
      this.#start(message)
      onStart()
    } else if (message.type === 'replay-end') return this.#endReplay()
    else if (message.type === 'exit') {
      const { type, ...result } = message
      this.#handlers.onExit?.(result)
      this.#finish(undefined, result)
    } else this.#finish(errorFromBody(message.error))
  }

  #start({ process, droppedBytes }: Extract<AttachServerMessage, { type: 'start' }>): void {
    const isFirst = this.process === undefined
    this.process = process
    this.#isOpen = true
    const isLiveOnly = isFirst && this.#isLiveOnly
    this.#output.begin(isLiveOnly ? process.outputBytes : droppedBytes, { isLiveOnly })
  }

  #endReplay(): void {
    if (!this.#isReplayed) this.#handlers.onReplayEnd?.()
    this.#isReplayed = true
  }

  #finish(error: unknown, result?: ProcessResult): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#hasEnded = result !== undefined
    if (result) this.#outcome.resolve(result)
    else this.#outcome.reject(error)
    this.#socket?.close()
  }
}
