import {
  IsletError,
  parseDurationMs,
  SERVICE_NAME,
  type ServiceInfo,
  type ServiceLogs,
  type StartService,
} from '@islet/contract/client'
import { SandboxPart } from '../client/part.ts'
import { ABORTABLE, type Abortable, guard, type Names } from '../options.ts'

export type ServiceStatus = ServiceInfo['status']

export interface WaitForOptions extends Abortable {
  /** Milliseconds or '30s'; then `waitFor` fails with code `timeout`. Default: one minute. */
  timeout?: number | string
}

const WAIT_MS = 60_000
/** How long one request waits; the server allows a minute. */
const POLL_MS = 20_000

/** Long-running programs that the server keeps running. */
export class Services extends SandboxPart {
  /** Resolves at once, while the service is `installing` or `starting`; `waitFor` waits until it is ready. */
  start(options: StartService & Abortable): Promise<ServiceInfo> {
    const { signal, ...body } = options
    return this.client.call('startService', { params: this.params, body, signal })
  }

  async list(options: Abortable = {}): Promise<ServiceInfo[]> {
    return (await this.client.call('listServices', { params: this.params, ...options })).services
  }

  async retrieve(name: string, options: Abortable = {}): Promise<ServiceInfo> {
    return this.client.call('getService', { params: this.#of(name), ...options })
  }

  /** Sends SIGTERM and, after its stop timeout, SIGKILL. Resolves when the service has stopped. */
  async stop(name: string, options: Abortable = {}): Promise<ServiceInfo> {
    return this.client.call('stopService', { params: this.#of(name), ...options })
  }

  /** Stops the service if it runs, and starts it. The install command runs again only if it never succeeded. */
  async restart(name: string, options: Abortable = {}): Promise<ServiceInfo> {
    return this.client.call('restartService', { params: this.#of(name), ...options })
  }

  /** Stops the service and removes it. */
  async delete(name: string, options: Abortable = {}): Promise<void> {
    return this.client.call('deleteService', { params: this.#of(name), ...options })
  }

  /** The kept output of its command, or with `install` of its install command. */
  async logs(name: string, options: { install?: boolean } & Abortable = {}): Promise<ServiceLogs> {
    const { signal, ...query } = options
    return this.client.call('serviceLogs', { params: this.#of(name), query, signal })
  }

  /** Code `invalid_state` if the service has failed or stopped instead, `timeout` if it takes too long. */
  async waitFor(
    name: string,
    status: ServiceStatus = 'ready',
    options: WaitForOptions = {},
  ): Promise<ServiceInfo> {
    const { signal, timeout = WAIT_MS } = options
    const timeoutMs = parseDurationMs(timeout)
    if (timeoutMs === undefined)
      throw new IsletError('bad_request', "A timeout is a number of milliseconds, or text like '30s'.")
    const deadline = performance.now() + timeoutMs
    for (;;) {
      const wait = Math.ceil(Math.min(Math.max(deadline - performance.now(), 0), POLL_MS))
      const query = { status, wait }
      const service = await this.client.call('getService', { params: this.#of(name), query, signal })
      if (service.status === status || (status === 'running' && service.status === 'ready')) return service
      if (service.status === 'failed' || service.status === 'stopped') {
        const { reason } = service
        const message = `Service ${name} is ${service.status}, not ${status}. ${reason ?? ''}`
        throw new IsletError('invalid_state', message.trim(), {
          hint: `islet service logs ${this.params.id} ${name} shows what it printed.`,
          details: { status: service.status, wanted: status, ...(reason && { reason }) },
        })
      }
      if (performance.now() >= deadline)
        throw new IsletError(
          'timeout',
          `Service ${name} is ${service.status}, not ${status}, after ${timeoutMs} ms.`,
        )
    }
  }

  /** A name like .. would lead to another URL. A missing name is refused by `routePath`. */
  #of(name: string): { id: string; name: string } {
    if (name && !SERVICE_NAME.test(name))
      throw new IsletError('service_not_found', `There is no service ${JSON.stringify(name)}.`)
    return { ...this.params, name }
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
