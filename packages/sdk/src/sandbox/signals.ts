import type { SignalEvent, SignalStatus } from '@islet/contract/client'
import type { Client } from '../client/client.ts'
import { ABORTABLE, guard } from '../options.ts'
import { SignalService } from './signal-service.ts'

interface Abortable {
  signal?: AbortSignal
}

/** Live messages about one sandbox. */
export class Signals {
  readonly #client: Client
  readonly #params: { id: string }

  constructor(client: Client, sandboxId: string) {
    this.#client = client
    this.#params = { id: sandboxId }
  }

  /** Resolves when signals come: whatever happens from then on is heard. */
  async start(options: Abortable = {}): Promise<SignalService> {
    const info = await this.#client.call('startSignals', { params: this.#params, ...options })
    options.signal?.throwIfAborted()
    return SignalService.open(this.#client, this.#params.id, info)
  }

  status(options: Abortable = {}): Promise<SignalStatus> {
    return this.#client.call('signalStatus', { params: this.#params, ...options })
  }

  /** For everybody who listens. Of what is stopped: does nothing. */
  async stop(options: Abortable = {}): Promise<void> {
    await this.#client.call('stopSignals', { params: this.#params, ...options })
  }

  emitPort(port: number, type: 'open' | 'close', url: string, options: Abortable = {}): Promise<void> {
    return this.#emit({ signal: 'port', port, type, url }, options)
  }

  /** That a server takes connections, which it may do some time after its port is open. */
  emitServerReady(port: number, url: string, options: Abortable = {}): Promise<void> {
    return this.#emit({ signal: 'server-ready', port, url }, options)
  }

  emitError(message: string, options: Abortable = {}): Promise<void> {
    return this.#emit({ signal: 'error', message }, options)
  }

  /** One of your own: a name of lower-case letters, digits and . _ : - with any JSON. */
  emit(
    name: string,
    data?: Extract<SignalEvent, { data?: unknown }>['data'],
    options: Abortable = {},
  ): Promise<void> {
    return this.#emit({ signal: name, ...(data !== undefined && { data }) }, options)
  }

  async #emit(body: SignalEvent, options: Abortable): Promise<void> {
    await this.#client.call('emitSignal', { params: this.#params, body, ...options })
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
