import {
  IsletError,
  type Names,
  refuseUnknown,
  type Sandbox,
  type ServiceInfo,
  type StartService,
} from '@islet/sdk'

export interface HealthCheckConfig {
  path: string
  interval_ms?: number
  timeout_ms?: number
  delay_ms?: number
}

export interface StartServerOptions {
  /** Lower-case letters, digits and dashes. */
  slug: string
  /** The command that starts the server; needed, unless `command` is given. */
  start?: string
  /** The same as `start`. */
  command?: string
  install?: string
  path?: string
  env_file?: string
  environment?: Record<string, string>
  port?: number
  strict_port?: boolean
  /** Start again when the sandbox starts again. Default: true. */
  autostart?: boolean
  restart_policy?: 'never' | 'on-failure' | 'always'
  /** 0: unlimited. */
  max_restarts?: number
  restart_delay_ms?: number
  stop_timeout_ms?: number
  health_check?: HealthCheckConfig
}

export interface ServerInfo {
  slug: string
  start: string
  /** The same as `start`. */
  command: string
  install?: string
  /** Absolute. */
  path: string
  original_path?: string
  env_file?: string
  environment: Record<string, string>
  port?: number
  url?: string
  status: ServiceInfo['status']
  pid?: number
  /** The id of its process. */
  terminal_id?: string
  autostart: boolean
  restart_policy?: string
  max_restarts: number
  restart_count?: number
  healthy?: boolean
  health_status?: string
  created_at: string
  updated_at: string
}

const HEALTH: Names<HealthCheckConfig> = { path: 1, interval_ms: 1, timeout_ms: 1, delay_ms: 1 }
const START: Names<StartServerOptions> = {
  slug: 1,
  start: 1,
  command: 1,
  install: 1,
  path: 1,
  env_file: 1,
  environment: 1,
  port: 1,
  strict_port: 1,
  autostart: 1,
  restart_policy: 1,
  max_restarts: 1,
  restart_delay_ms: 1,
  stop_timeout_ms: 1,
  health_check: 1,
}

export class ServerManager {
  readonly #native: Sandbox

  constructor(native: Sandbox) {
    this.#native = native
  }

  /** Resolves while the server is `installing` or `starting`. A stopped or failed server with this slug is replaced. */
  async start(options: StartServerOptions): Promise<ServerInfo> {
    refuseUnknown('sandbox.server.start', options, START)
    return toServer(await this.#native.service.start(toService(options)))
  }

  async list(): Promise<ServerInfo[]> {
    return (await this.#native.service.list()).map(toServer)
  }

  async retrieve(slug: string): Promise<ServerInfo> {
    return toServer(await this.#native.service.retrieve(slug))
  }

  async stop(slug: string): Promise<void> {
    await this.#native.service.stop(slug)
  }

  async restart(slug: string): Promise<ServerInfo> {
    return toServer(await this.#native.service.restart(slug))
  }

  async delete(slug: string): Promise<void> {
    await this.#native.service.delete(slug)
  }
}

function toService(options: StartServerOptions): StartService {
  const { slug, command, start = command, health_check: health, ...rest } = options
  if (start === undefined || (command !== undefined && command !== start))
    throw new IsletError('bad_request', `Server ${slug} needs one command.`, {
      hint: 'Give it as start; command is another name for it.',
    })
  if (health) refuseUnknown('The health_check of sandbox.server.start', health, HEALTH)
  return {
    name: slug,
    start,
    install: rest.install,
    path: rest.path,
    envFile: rest.env_file,
    environment: rest.environment,
    port: rest.port,
    strictPort: rest.strict_port,
    autostart: rest.autostart,
    restartPolicy: rest.restart_policy,
    maxRestarts: rest.max_restarts,
    restartDelay: rest.restart_delay_ms,
    stopTimeout: rest.stop_timeout_ms,
    healthCheck: health && {
      path: health.path,
      interval: health.interval_ms,
      timeout: health.timeout_ms,
      delay: health.delay_ms,
    },
  }
}

function toServer(info: ServiceInfo): ServerInfo {
  return {
    slug: info.name,
    start: info.start,
    command: info.start,
    install: info.install,
    path: info.path,
    original_path: info.originalPath,
    env_file: info.envFile,
    environment: info.environment,
    port: info.port,
    url: info.url,
    status: info.status,
    pid: info.pid,
    terminal_id: info.processId,
    autostart: info.autostart,
    restart_policy: info.restartPolicy,
    max_restarts: info.maxRestarts,
    restart_count: info.restartCount,
    healthy: info.healthy,
    health_status: info.healthStatus,
    created_at: info.createdAt,
    updated_at: info.updatedAt,
  }
}
