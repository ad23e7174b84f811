// One client of one process: replay, then live output, stdin, resize.
//
//   server: {start} (output) {replay-end} output ... {exit} or {error}     client: stdin bytes, {resize}, {stdin-end}
//
// A connection that breaks while the process runs is opened again: the sandbox outlives the server. `start` tells how
// much the process had printed when the replay was taken, so every byte is given to the caller once.
import { type AttachServerMessage, attachServerMessage, type ProcessInfo } from '@islet/contract'
import type { Client } from './client.ts'
import { abortError, ClientError, errorFromBody } from './errors.ts'
import { Inbox } from './transport/inbox.ts'
import { backoffMs, sleep } from './transport/retry.ts'
import type { Socket } from './transport/socket.ts'

export type ProcessResult = NonNullable<ProcessInfo['result']>
export type Channel = 'stdout' | 'stderr'

export interface SessionHandlers {
  /** A promise holds back the next call, and where the WebSocket can be paused, the program. */
  onOutput?(channel: Channel, bytes: Uint8Array): void | Promise<void>
  onReplayEnd?(): void
  onExit?(result: ProcessResult): void
}

const RECONNECT_MS = 30_000
const STDIN_HIGH_BYTES = 1024 * 1024
const STDIN_CHUNK_BYTES = 64 * 1024
const STDIN_POLL_MS = 5

export class Session {
  readonly result: Promise<ProcessResult>
  /** As it was at the (last) start of the connection. */
  process!: ProcessInfo
  /** Output was lost: it was printed before this client came, and is not kept any more. */
  truncated = false
  readonly #client: Client
  readonly #params: { id: string; pid: string }
  readonly #handlers: SessionHandlers
  readonly #outcome = Promise.withResolvers<ProcessResult>()
  #socket: Socket | undefined
  #isOver = false
  #position = 0
  #isLiveOnly = false
  #held: { channel: Channel; bytes: Uint8Array }[] | undefined

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
    this.result = this.#outcome.promise
    this.result.catch(() => {}) // whoever wants to know awaits it
  }

  /** Resolves when there is room for more. */
  async sendStdin(data: string | Uint8Array): Promise<void> {
    const bytes = typeof data === 'string' ? new TextEncoder().encode(data) : data
    for (let at = 0; at < bytes.length; at += STDIN_CHUNK_BYTES) {
      while ((this.#socket?.bufferedAmount ?? 0) > STDIN_HIGH_BYTES && !this.#isOver)
        await sleep(STDIN_POLL_MS)
      if (this.#isOver) return
      this.#socket?.send(bytes.slice(at, at + STDIN_CHUNK_BYTES))
    }
  }

  closeStdin(): void {
    this.#sendMessage({ type: 'stdin-end' })
  }

  resize(cols: number, rows: number): void {
    this.#sendMessage({ type: 'resize', cols, rows })
  }

  /** Leaves the process running; `result` rejects with an AbortError if it had not ended. */
  close(): void {
    this.#finish(abortError())
  }

  #sendMessage(message: object): void {
    if (!this.#isOver) this.#socket?.send(JSON.stringify(message))
  }

  /** Resolves with the first `start`; later connections of the same session are made by #reconnect. */
  #connect(query: { replay?: boolean | undefined }): Promise<void> {
    const opened = Promise.withResolvers<void>()
    const socket = this.#client.socket('attachProcess', { params: this.#params, query })
    const inbox = new Inbox(socket, (data) => this.#receive(data, opened.resolve))
    this.#socket = socket
    socket.onmessage = ({ data }) => inbox.push(data)
    socket.onerror = () => {} // a close follows
    socket.onclose = async ({ reason }) => {
      await inbox.drained()
      if (this.#isOver) return opened.reject(abortError())
      const lost = new ClientError('connection_failed', `The connection broke${reason && ` (${reason})`}.`)
      if (inbox.failure !== undefined) this.#finish(inbox.failure)
      else if (!inbox.isEmpty) void this.#reconnect(lost)
      opened.reject(inbox.failure ?? lost)
    }
    this.result.catch(opened.reject)
    return opened.promise.catch((error) => this.#whyNot(error))
  }

  /** A refused WebSocket does not say why; the same process over HTTP does. */
  async #whyNot(error: unknown): Promise<never> {
    if (error instanceof ClientError) await this.#client.call('getProcess', { params: this.#params })
    throw error
  }

  async #reconnect(lost: ClientError): Promise<void> {
    const deadline = Date.now() + RECONNECT_MS
    for (let tried = 0; !this.#isOver; tried++) {
      await sleep(backoffMs(tried))
      if (this.#isOver) return
      this.#held = []
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
    if (typeof data !== 'string') return this.#output(new Uint8Array(data as ArrayBuffer))
    const message = attachServerMessage.parse(JSON.parse(data))
    if (message.type === 'start') {
      this.#start(message)
      onStart()
    } else if (message.type === 'replay-end') return this.#replayEnd()
    else if (message.type === 'exit') {
      const { type, ...result } = message
      this.#handlers.onExit?.(result)
      this.#finish(undefined, result)
    } else this.#finish(errorFromBody(message.error))
  }

  #start(message: Extract<AttachServerMessage, { type: 'start' }>): void {
    this.process = message.process
    if (this.#held) return
    this.truncated = message.truncated
    if (this.#isLiveOnly) this.#position = message.process.outputBytes
  }

  #output(frame: Uint8Array): void | Promise<void> {
    const channel = frame[0] === 2 ? 'stderr' : 'stdout'
    const bytes = frame.subarray(1)
    if (this.#held) {
      this.#held.push({ channel, bytes })
      return
    }
    this.#position += bytes.length
    return this.#handlers.onOutput?.(channel, bytes)
  }

  async #replayEnd(): Promise<void> {
    const held = this.#held
    this.#held = undefined
    const end = this.process.outputBytes
    if (!held) {
      this.#position = end
      return this.#handlers.onReplayEnd?.()
    }
    const kept = held.reduce((sum, { bytes }) => sum + bytes.length, 0)
    if (end - kept > this.#position) this.truncated = true
    let at = end - kept
    for (const { channel, bytes } of held) {
      const known = Math.min(bytes.length, Math.max(0, this.#position - at))
      at += bytes.length
      if (known < bytes.length) await this.#handlers.onOutput?.(channel, bytes.subarray(known))
    }
    this.#position = end
  }

  #finish(error: unknown, result?: ProcessResult): void {
    if (this.#isOver) return
    this.#isOver = true
    if (result) this.#outcome.resolve(result)
    else this.#outcome.reject(error)
    this.#socket?.close()
  }
}
