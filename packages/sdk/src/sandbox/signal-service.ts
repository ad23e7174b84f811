// The client side of started signals: the handlers, and the channel on which signals arrive.
import { type SignalMessage, type SignalStatus, signalMessageShape } from '@islet/contract/client'
import { openChannel } from '../client/channel.ts'
import type { Client } from '../client/client.ts'
import type { Connection } from '../client/connection.ts'
import { ABORTABLE, type Abortable, guard } from '../options.ts'
import { Handlers } from './handlers.ts'

/** How many messages are held until the first handler is registered. */
const HELD_MESSAGES = 1000

export interface PortSignalEvent {
  signal: 'port' | 'server-ready'
  port: number
  url: string
  /** Only of the signal `port`. */
  type?: 'open' | 'close'
}

export interface ErrorSignalEvent {
  signal: 'error'
  message: string
}

/** A custom signal. The fields of the other kinds are typed as undefined, so that they can be read on any SignalEvent. */
export interface CustomSignalEvent {
  signal: string
  data?: unknown
  port?: undefined
  url?: undefined
  type?: undefined
  message?: undefined
}

export type SignalEvent = PortSignalEvent | ErrorSignalEvent | CustomSignalEvent

export type SignalEvents = {
  /** A port opened or closed, or a server is ready. */
  port: PortSignalEvent
  error: ErrorSignalEvent
  /** Every signal, also custom ones. */
  signal: SignalEvent
  /** Signals were lost, because this client was too slow or the connection broke. */
  overflow: undefined
  /** Signals ended: any client called `stop` (undefined), or an error ended them. */
  stopped: unknown
}

export class SignalService {
  readonly #client: Client
  readonly #params: { id: string }
  readonly #handlers = new Handlers<SignalEvents>()
  #info: SignalStatus
  #channel: Connection | undefined
  #held: SignalMessage[] | undefined = []

  /** For `Signals`. */
  static async open(client: Client, sandboxId: string, info: SignalStatus): Promise<SignalService> {
    const service = new SignalService(client, sandboxId, info)
    await service.#open()
    return service
  }

  private constructor(client: Client, sandboxId: string, info: SignalStatus) {
    this.#client = client
    this.#params = { id: sandboxId }
    this.#info = info
  }

  getStatus(): SignalStatus['status'] {
    return this.#info.status
  }

  /** The path of the WebSocket. */
  getChannel(): string {
    return this.#info.channel
  }

  isActive(): boolean {
    return this.#info.status === 'active'
  }

  /** The handlers that are registered first, in one go, also get the signals that came before them. */
  on<Name extends keyof SignalEvents>(name: Name, handler: (event: SignalEvents[Name]) => unknown): void {
    this.#handlers.on(name, handler)
    queueMicrotask(() => this.#release())
  }

  /** Does nothing if the handler is not registered. */
  off<Name extends keyof SignalEvents>(name: Name, handler: (event: SignalEvents[Name]) => unknown): void {
    this.#handlers.off(name, handler)
  }

  /** Stops signals of the sandbox for all clients. Calling it again does nothing. */
  async stop(options: Abortable = {}): Promise<void> {
    await this.#client.call('stopSignals', { params: this.#params, ...options })
    this.#channel?.end()
  }

  /** Stops signals for this client only. Calling it again does nothing. */
  close(): void {
    this.#channel?.end()
  }

  async #open(): Promise<void> {
    this.#channel = await openChannel<SignalMessage>(this.#client, 'signals', {
      params: this.#params,
      shape: signalMessageShape,
      onMessage: (message) => this.#receive(message),
      onReconnect: () => this.#receive({ type: 'overflow' }),
      onEnd: (error) => this.#end(error),
      whyNot: () => this.#client.call('startSignals', { params: this.#params }),
    })
  }

  #receive(message: SignalMessage): void {
    if (!this.#held) this.#emit(message)
    else if (this.#held.length < HELD_MESSAGES) this.#held.push(message)
    else this.#held = [{ type: 'overflow' }]
  }

  #release(): void {
    const held = this.#held ?? []
    this.#held = undefined
    for (const message of held) this.#emit(message)
  }

  #emit(message: SignalMessage): void {
    if (message.type === 'overflow') this.#handlers.emit('overflow', undefined)
    if (message.type !== 'signal') return
    const event = message.event as SignalEvent
    if (isPort(event)) this.#handlers.emit('port', event)
    if (isError(event)) this.#handlers.emit('error', event)
    this.#handlers.emit('signal', event)
  }

  #end(error: unknown): void {
    this.#info = { ...this.#info, status: 'stopped' }
    this.#release()
    this.#handlers.emit('stopped', error)
    this.#handlers.clear()
  }
}

// Custom signals have any other name, so TypeScript cannot tell the kinds apart by `signal`.
function isPort(event: SignalEvent): event is PortSignalEvent {
  return event.signal === 'port' || event.signal === 'server-ready'
}

function isError(event: SignalEvent): event is ErrorSignalEvent {
  return event.signal === 'error'
}

guard(SignalService.prototype, 'signals', { stop: [ABORTABLE] })
