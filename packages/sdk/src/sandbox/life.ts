import type { Sandbox as SandboxInfo, Timeouts, WokenSandbox } from '@islet/contract/client'
import type { Client } from '../client/client.ts'

interface Abortable {
  signal?: AbortSignal
}

export interface WakeOptions extends Abortable {
  /** A new idle timeout: milliseconds or like '10m'; 0 is never. Default: as it was. */
  timeout?: number | string
}

/** Standing still, going on, and when a sandbox does so by itself. One that is already as asked for is answered as it is. */
export class Life {
  readonly #client: Client
  readonly #params: { id: string }

  constructor(client: Client, sandboxId: string) {
    this.#client = client
    this.#params = { id: sandboxId }
  }

  pause({ signal }: Abortable): Promise<SandboxInfo> {
    return this.#client.call('pauseSandbox', { params: this.#params, signal })
  }

  resume({ signal }: Abortable): Promise<WokenSandbox> {
    return this.#client.call('resumeSandbox', { params: this.#params, signal })
  }

  hibernate({ signal }: Abortable): Promise<SandboxInfo> {
    return this.#client.call('hibernateSandbox', { params: this.#params, signal })
  }

  wake({ timeout, signal }: WakeOptions): Promise<WokenSandbox> {
    return this.#client.call('wakeSandbox', { params: this.#params, body: { timeout }, signal })
  }

  setTimeout(timeout: number | string | Timeouts, { signal }: Abortable): Promise<SandboxInfo> {
    const body = typeof timeout === 'object' ? timeout : { idle: timeout }
    return this.#client.call('setTimeout', { params: this.#params, body, signal })
  }
}
