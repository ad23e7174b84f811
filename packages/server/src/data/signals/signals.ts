// Live messages about sandboxes for connected clients. Nothing is stored: after a restart of the server clients reconnect, which
// starts signals again.
import { IsletError, type SignalEvent } from '@islet/contract'
import type { Sandboxes } from '../../control/sandboxes.ts'
import { Rate } from '../../lib/rate.ts'
import type { Log } from '../../log.ts'
import type { Ports } from '../ports.ts'
import { PortSignals } from './port-signals.ts'
import { SignalListener, toTold } from './signal-listener.ts'

const MAX_LISTENERS = 64
/** Signals that programs inside may send. */
const INSIDE_PER_SECOND = 100

interface SignalsOptions {
  sandboxes: Sandboxes
  ports: Ports
  log: Log
  /** The preview URL of a port. */
  previewUrl: (sandboxId: string, port: number) => Promise<string>
}

export class Signals {
  readonly #options: SignalsOptions
  /** Channels of the sandboxes whose signals are started. */
  readonly #channels = new Map<string, Channel>()
  readonly #insideRates = new Map<string, Rate>()

  constructor(options: SignalsOptions) {
    this.#options = options
    options.sandboxes.observe({ began: () => {}, gone: async (id) => this.#forget(id) })
  }

  async start(sandboxId: string): Promise<void> {
    await this.#options.sandboxes.running(sandboxId)
    this.#channel(sandboxId)
  }

  /** `stopped` also for a sandbox that does not run. */
  status(sandboxId: string): 'active' | 'stopped' {
    this.#options.sandboxes.record(sandboxId)
    return this.#channels.has(sandboxId) ? 'active' : 'stopped'
  }

  /** Ends all listeners. Does nothing if signals are stopped. */
  stop(sandboxId: string): void {
    this.#options.sandboxes.record(sandboxId)
    this.#channels.get(sandboxId)?.end()
    this.#channels.delete(sandboxId)
  }

  /** Starts signals if necessary. Only later changes of ports are signalled. */
  async listen(sandboxId: string): Promise<SignalListener> {
    await this.start(sandboxId)
    const channel = this.#channel(sandboxId)
    if (channel.listeners.size >= MAX_LISTENERS) {
      throw new IsletError('limit_exceeded', `At most ${MAX_LISTENERS} clients listen to a sandbox.`)
    }
    const listener = new SignalListener(() => channel.leave(listener))
    channel.listeners.add(listener)
    try {
      await channel.watchPorts()
    } catch (error) {
      listener.close()
      throw error
    }
    return listener
  }

  /** Sends to all listeners; without any the signal is lost. */
  emit(sandboxId: string, event: SignalEvent): void {
    this.#channels.get(sandboxId)?.emit(event)
  }

  /** The same for a client's request: it fails if the sandbox does not run. */
  async emitFor(sandboxId: string, event: SignalEvent): Promise<void> {
    await this.#options.sandboxes.running(sandboxId)
    this.emit(sandboxId, event)
  }

  /** The same for programs inside, with a rate limit. */
  emitFromInside(sandboxId: string, event: SignalEvent): void {
    let rate = this.#insideRates.get(sandboxId)
    if (!rate) {
      rate = new Rate(INSIDE_PER_SECOND)
      this.#insideRates.set(sandboxId, rate)
    }
    if (!rate.tryNow()) {
      throw new IsletError(
        'limit_exceeded',
        `A sandbox may send at most ${INSIDE_PER_SECOND} signals a second from inside.`,
      )
    }
    this.emit(sandboxId, event)
  }

  #channel(sandboxId: string): Channel {
    const found = this.#channels.get(sandboxId)
    if (found) return found
    const { ports, log, previewUrl } = this.#options
    const channel: Channel = new Channel(
      () =>
        new PortSignals({
          watch: (onChange) => ports.watch(sandboxId, onChange),
          urlOf: (port) => previewUrl(sandboxId, port),
          emit: (event) => channel.emit(event),
          log,
        }),
    )
    this.#channels.set(sandboxId, channel)
    return channel
  }

  #forget(sandboxId: string): void {
    this.#channels.get(sandboxId)?.end(new IsletError('sandbox_lost', `Sandbox ${sandboxId} is gone.`))
    this.#channels.delete(sandboxId)
    this.#insideRates.delete(sandboxId)
  }
}

/** The started signals of one sandbox. Its ports are polled only while there are listeners. */
class Channel {
  readonly listeners = new Set<SignalListener>()
  readonly #makePorts: () => PortSignals
  #ports: PortSignals | undefined

  constructor(makePorts: () => PortSignals) {
    this.#makePorts = makePorts
  }

  watchPorts(): Promise<void> {
    this.#ports ??= this.#makePorts()
    return this.#ports.begun
  }

  emit(event: SignalEvent): void {
    if (this.listeners.size === 0) return
    const told = toTold(event)
    for (const listener of this.listeners) listener.push(told)
  }

  leave(listener: SignalListener): void {
    this.listeners.delete(listener)
    if (this.listeners.size > 0) return
    this.#ports?.stop()
    this.#ports = undefined
  }

  end(error?: IsletError): void {
    for (const listener of [...this.listeners]) listener.end(error)
  }
}
