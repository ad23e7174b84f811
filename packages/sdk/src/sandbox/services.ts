import {
  IsletError,
  parseDurationMs,
  SERVICE_NAME,
  type ServiceInfo,
  type ServiceLogs,
  type StartService,
} from '@islet/contract/client'
import type { Client } from '../client/client.ts'
import { ABORTABLE, guard, type Names } from '../options.ts'

export type ServiceStatus = ServiceInfo['status']

export interface WaitForOptions {
  /** Milliseconds or '30s'; `timeout` is thrown then. Default: a minute. */
  timeout?: number | string
  signal?: AbortSignal
}

interface Abortable {
  signal?: AbortSignal
}

const WAIT_MS = 60_000
/** Of one request; the server allows a minute. */
const POLL_MS = 20_000

/** Long-running programs of one sandbox that are kept running. */
export class Services {
  readonly #client: Client
  readonly #sandboxId: string

  constructor(client: Client, sandboxId: string) {
    this.#client = client
    this.#sandboxId = sandboxId
  }

  /** Answers at once, `installing` or `starting`; `waitFor` tells when it is ready. */
  start(options: StartService & Abortable): Promise<ServiceInfo> {
    const { signal, ...body } = options
    return this.#client.call('startService', { params: { id: this.#sandboxId }, body, signal })
  }

  async list(options: Abortable = {}): Promise<ServiceInfo[]> {
    return (await this.#client.call('listServices', { params: { id: this.#sandboxId }, ...options })).services
  }

  async retrieve(name: string, options: Abortable = {}): Promise<ServiceInfo> {
    return this.#client.call('getService', { params: this.#params(name), ...options })
  }

  /** SIGTERM, its stop timeout, SIGKILL; answers once it has stopped. Of a stopped one: answers. */
  async stop(name: string, options: Abortable = {}): Promise<ServiceInfo> {
    return this.#client.call('stopService', { params: this.#params(name), ...options })
  }

  /** Stops it if it runs, and starts it: answers with its new pid. Its install command runs again only if it never succeeded. */
  async restart(name: string, options: Abortable = {}): Promise<ServiceInfo> {
    return this.#client.call('restartService', { params: this.#params(name), ...options })
  }

  /** Stops it and forgets it. */
  async delete(name: string, options: Abortable = {}): Promise<void> {
    return this.#client.call('deleteService', { params: this.#params(name), ...options })
  }

  /** What is kept of the output of its command, or with `install` of its install command. */
  async logs(name: string, options: { install?: boolean } & Abortable = {}): Promise<ServiceLogs> {
    const { signal, ...query } = options
    return this.#client.call('serviceLogs', { params: this.#params(name), query, signal })
  }

  /** Code `invalid_state` when it has failed or stopped instead, `timeout` when it takes too long. */
  async waitFor(
    name: string,
    status: ServiceStatus = 'ready',
    options: WaitForOptions = {},
  ): Promise<ServiceInfo> {
    const { signal, timeout = WAIT_MS } = options
    const timeoutMs = parseDurationMs(timeout)
    if (timeoutMs === undefined)
      throw new IsletError('bad_request', "A timeout is milliseconds, or like '30s'.")
    const deadline = performance.now() + timeoutMs
    for (;;) {
      const wait = Math.ceil(Math.min(Math.max(deadline - performance.now(), 0), POLL_MS))
      const query = { status, wait }
      const service = await this.#client.call('getService', { params: this.#params(name), query, signal })
      if (service.status === status || (status === 'running' && service.status === 'ready')) return service
      if (service.status === 'failed' || service.status === 'stopped') {
        const { reason } = service
        throw new IsletError(
          'invalid_state',
          `Service ${name} is ${service.status}, not ${status}. ${reason ?? ''}`.trim(),
          {
            hint: `islet service logs ${this.#sandboxId} ${name} shows what it printed.`,
            details: { status: service.status, wanted: status, ...(reason && { reason }) },
          },
        )
      }
      if (performance.now() >= deadline)
        throw new IsletError(
          'timeout',
          `Service ${name} is ${service.status}, not ${status}, after ${timeoutMs} ms.`,
        )
    }
  }

  /** A name like .. would lead to another address. A missing one is refused where the path is made. */
  #params(name: string): { id: string; name: string } {
    if (name && !SERVICE_NAME.test(name))
      throw new IsletError('service_not_found', `There is no service ${JSON.stringify(name)}.`)
    return { id: this.#sandboxId, name }
  }
}

const START: Names<StartService & Abortable> = {
  name: 1,
  start: 1,
  install: 1,
  path: 1,
  envFile: 1,
  environment: 1,
  user: 1,
  port: 1,
  strictPort: 1,
  autostart: 1,
  restartPolicy: 1,
  maxRestarts: 1,
  restartDelay: 1,
  stopTimeout: 1,
  healthCheck: 1,
  keepAwake: 1,
  keepOutput: 1,
  signal: 1,
}

guard(Services.prototype, 'sandbox.service', {
  start: [START],
  list: [ABORTABLE],
  retrieve: [null, ABORTABLE],
  stop: [null, ABORTABLE],
  restart: [null, ABORTABLE],
  delete: [null, ABORTABLE],
  logs: [null, { install: 1, signal: 1 }],
  waitFor: [null, null, { timeout: 1, signal: 1 }],
})
