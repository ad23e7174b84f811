// Live messages about sandboxes, to whoever listens. Nothing of it is kept: after a restart of the server clients connect
// again, and that starts it again.
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

export interface SignalsOptions {
  sandboxes: Sandboxes
  ports: Ports
  log: Log
  /** The address of a port from outside. */
  previewUrl: (sandboxId: string, port: number) => Promise<string>
}

export class Signals {
  readonly #options: SignalsOptions
  /** Of the sandboxes where signals are started. */
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

  /** Of one that does not run: `stopped`. */
  status(sandboxId: string): 'active' | 'stopped' {
    this.#options.sandboxes.record(sandboxId)
    return this.#channels.has(sandboxId) ? 'active' : 'stopped'
  }

  /** Everybody who listens hears that it is over. Of what is stopped: does nothing. */
  stop(sandboxId: string): void {
    this.#options.sandboxes.record(sandboxId)
    this.#channels.get(sandboxId)?.end()
    this.#channels.delete(sandboxId)
  }

  /** Starts signals if need be. Ports are told from here on: what listens already is not. */
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

  /** Tells everybody who listens; with nobody there it is gone. */
  emit(sandboxId: string, event: SignalEvent): void {
    this.#channels.get(sandboxId)?.emit(event)
  }

  /** The same for what a client asks for: it learns whether the sandbox runs. */
  async emitFor(sandboxId: string, event: SignalEvent): Promise<void> {
    await this.#options.sandboxes.running(sandboxId)
    this.emit(sandboxId, event)
  }

  /** The same for programs inside, who may not flood those who listen. */
  emitFromInside(sandboxId: string, event: SignalEvent): void {
    let rate = this.#insideRates.get(sandboxId)
    if (!rate) {
      rate = new Rate(INSIDE_PER_SECOND)
      this.#insideRates.set(sandboxId, rate)
    }
    if (!rate.tryNow()) {
      throw new IsletError(
        'limit_exceeded',
        `At most ${INSIDE_PER_SECOND} signals a second come from inside.`,
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

/** Started signals of one sandbox. Its ports are looked at only while somebody listens. */
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
