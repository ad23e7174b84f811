// One WebSocket of a sandbox, opened again when it breaks: the sandbox outlives the server.
//
//   server: start ... exit or error, then close. Closed without these two: connect again, unless `start` never came.
import type { RouteName } from '@islet/contract/client'
import { abortError, ClientError } from '../errors.ts'
import { Inbox } from '../transport/inbox.ts'
import { backoffMs, sleep } from '../transport/retry.ts'
import type { Socket } from '../transport/socket.ts'
import type { Client, Query } from './client.ts'
import { deferred } from './deferred.ts'

export interface ConnectionOptions {
  params: Record<string, string>
  /** Asked before each attempt to connect. */
  query?(): Query
  /** How long to try to reconnect after a break. */
  reconnectMs: number
  /** Handles one frame; calls `onStart` when the frame is the server's `start`. A promise delays the next frame. */
  onFrame(data: unknown, onStart: () => void): void | Promise<void>
  /** Connected again after a break. */
  onReconnect?(): void
  /** Called once, with what was given to `end`, or with the error that ended the connection. */
  onEnd(error: unknown): void
  /** The same request over HTTP: a refused WebSocket does not say why, this does. */
  whyNot(): Promise<unknown>
}

export class Connection {
  readonly #client: Client
  readonly #route: RouteName
  readonly #options: ConnectionOptions
  /** Rejects at the end, so that no attempt to connect waits longer. */
  readonly #ended = deferred<never>()
  #socket: Socket | undefined
  #isOpen = false
  #isOver = false

  constructor(client: Client, route: RouteName, options: ConnectionOptions) {
    this.#client = client
    this.#route = route
    this.#options = options
    this.#ended.promise.catch(() => {})
  }

  /** Resolves when the server has sent `start`. */
  open(): Promise<void> {
    return this.#connect()
  }

  get isOver(): boolean {
    return this.#isOver
  }

  /** Bytes that wait to be sent; undefined while there is no connection. */
  get bufferedBytes(): number | undefined {
    return this.#isOpen ? this.#socket?.bufferedAmount : undefined
  }

  send(data: string | Uint8Array<ArrayBuffer>): void {
    this.#socket?.send(data)
  }

  /** Closes for good. Calling it again does nothing. */
  end(error?: unknown): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#ended.reject(error ?? abortError())
    this.#socket?.close()
    this.#options.onEnd(error)
  }

  async #connect(isSecond = false): Promise<void> {
    const { params, query, onFrame, whyNot } = this.#options
    await Promise.race([this.#client.ready(), this.#ended.promise])
    const started = deferred<void>()
    let hasStarted = false
    const onStart = () => {
      hasStarted = true
      this.#isOpen = true
      started.resolve()
    }
    const socket = this.#client.socket(this.#route, { params, ...(query && { query: query() }) })
    const inbox = new Inbox(socket, (data) => (this.#isOver ? undefined : onFrame(data, onStart)))
    this.#socket = socket
    socket.onmessage = ({ data }) => inbox.push(data)
    socket.onerror = () => {} // a close follows
    socket.onclose = async ({ reason }) => {
      this.#isOpen = false
      await inbox.drained() // `start` may be among what still waits
      this.#isOpen = false
      const lost = new ClientError('connection_failed', `The connection broke${reason && ` (${reason})`}.`)
      if (inbox.failure !== undefined) this.end(inbox.failure)
      else if (hasStarted) void this.#reconnect(lost)
      started.reject(inbox.failure ?? lost)
    }
    try {
      await Promise.race([started.promise, this.#ended.promise])
    } catch (error) {
      if (this.#isOver || !(error instanceof ClientError)) throw error
      if (!(await this.#client.renewedBy(whyNot)) || isSecond) throw error
      return this.#connect(true)
    }
  }

  async #reconnect(lost: ClientError): Promise<void> {
    const { reconnectMs, onReconnect } = this.#options
    const deadline = Date.now() + reconnectMs
    for (let tried = 0; !this.#isOver; tried++) {
      await sleep(backoffMs(tried))
      if (this.#isOver) return
      try {
        await this.#connect()
        return onReconnect?.()
      } catch (error) {
        const isGone = !(error instanceof ClientError)
        if (isGone || Date.now() > deadline) return this.end(isGone ? error : lost)
      }
    }
  }
}
