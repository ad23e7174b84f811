// A WebSocket that only tells: JSON messages from the server, first `start`, last `exit` or `error`. It connects again by
// itself when the connection breaks; what happened meanwhile is lost, which `onReconnect` is there to say.
import type { RouteName, Shape } from '@islet/contract/client'
import { abortError, ClientError, errorFromBody, type WireError } from '../errors.ts'
import { Inbox } from '../transport/inbox.ts'
import { backoffMs, sleep } from '../transport/retry.ts'
import type { Socket } from '../transport/socket.ts'
import { checkedMessage } from './checked.ts'
import type { Client } from './client.ts'
import { deferred } from './deferred.ts'

/** How long a broken connection is tried to be made again. */
const RECONNECT_MS = 60_000

export interface ChannelOptions<Message> {
  params: Record<string, string>
  /** Of a Message. */
  shape: Shape
  /** `start`, `exit` and `error` are the channel's own. */
  onMessage(message: Message): void
  /** It works again after a break. */
  onReconnect?(): void
  /** It is over: with an error, or by `exit` or `close` without one. */
  onEnd?(error: unknown): void
  /** The same thing over HTTP: a refused WebSocket does not say why, this does. */
  whyNot(): Promise<unknown>
}

export class Channel<Message extends { type: string }> {
  readonly #client: Client
  readonly #route: RouteName
  readonly #options: ChannelOptions<Message>
  #socket: Socket | undefined
  #isOver = false

  /** Resolves once the server has said `start`. */
  static async open<Message extends { type: string }>(
    client: Client,
    route: RouteName,
    options: ChannelOptions<Message>,
  ): Promise<Channel<Message>> {
    const channel = new Channel(client, route, options)
    await channel.#connect()
    return channel
  }

  private constructor(client: Client, route: RouteName, options: ChannelOptions<Message>) {
    this.#client = client
    this.#route = route
    this.#options = options
  }

  /** Twice is fine. */
  close(): void {
    this.#end(undefined)
  }

  async #connect(isSecond = false): Promise<void> {
    await this.#client.ready()
    if (this.#isOver) throw abortError()
    const opened = deferred<void>()
    const socket = this.#client.socket(this.#route, { params: this.#options.params })
    const inbox = new Inbox(socket, (data) => this.#receive(data, opened.resolve))
    this.#socket = socket
    socket.onmessage = ({ data }) => inbox.push(data)
    socket.onerror = () => {} // a close follows
    socket.onclose = async ({ reason }) => {
      await inbox.drained()
      if (this.#isOver) return opened.reject(abortError())
      const lost = new ClientError('connection_failed', `The connection broke${reason && ` (${reason})`}.`)
      if (inbox.failure !== undefined) this.#end(inbox.failure)
      else if (!inbox.isEmpty) void this.#reconnect(lost)
      opened.reject(inbox.failure ?? lost)
    }
    return opened.promise.catch(async (error) => {
      const { whyNot } = this.#options
      if (!(error instanceof ClientError) || !(await this.#client.renewedBy(whyNot)) || isSecond) throw error
      return this.#connect(true)
    })
  }

  async #reconnect(lost: ClientError): Promise<void> {
    const deadline = Date.now() + RECONNECT_MS
    for (let tried = 0; !this.#isOver; tried++) {
      await sleep(backoffMs(tried))
      if (this.#isOver) return
      try {
        await this.#connect()
        return this.#options.onReconnect?.()
      } catch (error) {
        const isGone = !(error instanceof ClientError)
        if (isGone || Date.now() > deadline) return this.#end(isGone ? error : lost)
      }
    }
  }

  #receive(data: unknown, onStart: () => void): void {
    if (this.#isOver) return
    const message = checkedMessage<Message & { error?: WireError }>(this.#options.shape, data)
    if (message === undefined) return
    if (message.type === 'start') onStart()
    else if (message.type === 'exit') this.#end(undefined)
    else if (message.type === 'error') this.#end(errorFromBody(message.error!))
    else this.#options.onMessage(message)
  }

  #end(error: unknown): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#socket?.close()
    this.#options.onEnd?.(error)
  }
}
