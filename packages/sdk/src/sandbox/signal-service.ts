// What a client has of started signals: its handlers, and the channel the signals come by.
import { type SignalMessage, type SignalStatus, signalMessageShape } from '@islet/contract/client'
import { Channel } from '../client/channel.ts'
import type { Client } from '../client/client.ts'
import { ABORTABLE, guard } from '../options.ts'
import { Handlers } from './handlers.ts'

/** What is held until there is a handler. */
const HELD_MESSAGES = 1000

export interface PortSignalEvent {
  signal: 'port' | 'server-ready'
  port: number
  url: string
  /** Of `port`. */
  type?: 'open' | 'close'
}

export interface ErrorSignalEvent {
  signal: 'error'
  message: string
}

/** One of your own. What others have is never there, so that it may be asked for without knowing which it is. */
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
  /** A port that opened or closed, and a server that is ready. */
  port: PortSignalEvent
  error: ErrorSignalEvent
  /** Every signal, those of your own too. */
  signal: SignalEvent
  /** Signals were lost, because this client was too slow or the connection broke. */
  overflow: undefined
  /** It is over: by `stop`, whoever called it, or with the error that ended it. */
  stopped: unknown
}

export class SignalService {
  readonly #client: Client
  readonly #params: { id: string }
  readonly #handlers = new Handlers<SignalEvents>()
  #info: SignalStatus
  #channel: Channel<SignalMessage> | undefined
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

  /** What came before there was any handler comes to those that are registered together with the first. */
  on<Name extends keyof SignalEvents>(name: Name, handler: (event: SignalEvents[Name]) => unknown): void {
    this.#handlers.on(name, handler)
    queueMicrotask(() => this.#release())
  }

  /** Of one that was not registered: does nothing. */
  off<Name extends keyof SignalEvents>(name: Name, handler: (event: SignalEvents[Name]) => unknown): void {
    this.#handlers.off(name, handler)
  }

  /** For everybody who listens to the sandbox. Twice is fine. */
  async stop(options: { signal?: AbortSignal } = {}): Promise<void> {
    await this.#client.call('stopSignals', { params: this.#params, ...options })
    this.#channel?.close()
  }

  /** This client hears no more; others do. Twice is fine. */
  close(): void {
    this.#channel?.close()
  }

  async #open(): Promise<void> {
    this.#channel = await Channel.open(this.#client, 'signals', {
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

// The names of signals of one's own are any text but these.
function isPort(event: SignalEvent): event is PortSignalEvent {
  return event.signal === 'port' || event.signal === 'server-ready'
}

function isError(event: SignalEvent): event is ErrorSignalEvent {
  return event.signal === 'error'
}

guard(SignalService.prototype, 'signals', { stop: [ABORTABLE] })
