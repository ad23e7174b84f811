import type { SignalEvent, SignalStatus } from '@islet/contract/client'
import { SandboxPart } from '../client/part.ts'
import { ABORTABLE, type Abortable, guard } from '../options.ts'
import { SignalService } from './signal-service.ts'

/** Live messages about one sandbox. */
export class Signals extends SandboxPart {
  /** Resolves when the connection is open: every signal from then on is received. */
  async start(options: Abortable = {}): Promise<SignalService> {
    const info = await this.client.call('startSignals', { params: this.params, ...options })
    options.signal?.throwIfAborted()
    return SignalService.open(this.client, this.params.id, info)
  }

  status(options: Abortable = {}): Promise<SignalStatus> {
    return this.client.call('signalStatus', { params: this.params, ...options })
  }

  /** Stops signals for all clients. Does nothing if they are stopped. */
  async stop(options: Abortable = {}): Promise<void> {
    await this.client.call('stopSignals', { params: this.params, ...options })
  }

  emitPort(port: number, type: 'open' | 'close', url: string, options: Abortable = {}): Promise<void> {
    return this.#emit({ signal: 'port', port, type, url }, options)
  }

  /** Says that a server accepts connections, which may be some time after its port opened. */
  emitServerReady(port: number, url: string, options: Abortable = {}): Promise<void> {
    return this.#emit({ signal: 'server-ready', port, url }, options)
  }

  emitError(message: string, options: Abortable = {}): Promise<void> {
    return this.#emit({ signal: 'error', message }, options)
  }

  /** A custom signal: a name of lower-case letters, digits and . _ : - with any JSON. */
  emit(
    name: string,
    data?: Extract<SignalEvent, { data?: unknown }>['data'],
    options: Abortable = {},
  ): Promise<void> {
    return this.#emit({ signal: name, ...(data !== undefined && { data }) }, options)
  }

  async #emit(body: SignalEvent, options: Abortable): Promise<void> {
    await this.client.call('emitSignal', { params: this.params, body, ...options })
  }
}

guard(Signals.prototype, 'sandbox.signals', {
  start: [ABORTABLE],
  status: [ABORTABLE],
  stop: [ABORTABLE],
  emitPort: [null, null, null, ABORTABLE],
  emitServerReady: [null, null, ABORTABLE],
  emitError: [null, ABORTABLE],
  emit: [null, null, ABORTABLE],
})
