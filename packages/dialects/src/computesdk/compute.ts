// Where sandboxes come from. `compute` uses the server of the environment, `compute({ gatewayUrl })` another one.
import {
  type CreateOptions,
  hasCode,
  Islet,
  IsletError,
  type Names,
  type Sandbox as Native,
  refuseUnknown,
  type SocketConstructor,
} from '@islet/sdk'
import { Sandbox } from './sandbox.ts'

export interface ComputeConfig {
  /** The URL of the Islet server. Default: ISLET_URL, else the server of this machine. */
  gatewayUrl?: string
  /** Default: ISLET_API_KEY, else the key file of this machine. */
  computesdkApiKey?: string
  /** The only one there is. */
  provider?: 'islet'
  WebSocket?: SocketConstructor
}

export interface CreateSandboxOptions {
  /** Milliseconds without use until the sandbox hibernates; 0: never. Default: 300000. */
  timeout?: number
  /** The name of a runtime. Default: base. */
  templateId?: string
  /** A snapshot to start from, instead of a runtime. */
  snapshotId?: string
  metadata?: Record<string, unknown>
  envs?: Record<string, string>
  /** Unique on the server. */
  name?: string
  /** Where commands start; created if missing. */
  directory?: string
  /** Only here: whether the sandbox reaches the internet. Default: true. */
  network?: boolean
}

export interface Compute {
  sandbox: {
    create(options?: CreateSandboxOptions): Promise<Sandbox>
    /** Null if there is none. */
    getById(sandboxId: string): Promise<Sandbox | null>
    /** Those that are not stopped, newest first. */
    list(): Promise<Sandbox[]>
    /** Does nothing if there is none. */
    destroy(sandboxId: string): Promise<void>
    /** The sandbox with this name as it is, or a new one. */
    findOrCreate(options: CreateSandboxOptions & { name: string }): Promise<Sandbox>
    /** Null if there is none. */
    find(options: { name: string }): Promise<Sandbox | null>
  }
}

const CONFIG: Names<ComputeConfig> = { gatewayUrl: 1, computesdkApiKey: 1, provider: 1, WebSocket: 1 }
const CREATE: Names<CreateSandboxOptions> = {
  timeout: 1,
  templateId: 1,
  snapshotId: 1,
  metadata: 1,
  envs: 1,
  name: 1,
  directory: 1,
  network: 1,
}

/** `compute.sandbox` finds its server at each use: the environment may be set after the import. */
export const compute: Compute & ((config: ComputeConfig) => Compute) = Object.defineProperty(
  (config: ComputeConfig) => toCompute(config),
  'sandbox',
  { get: () => toCompute({}).sandbox },
) as never

function toCompute(config: ComputeConfig): Compute {
  refuseUnknown('compute', config, CONFIG)
  const { gatewayUrl: url, computesdkApiKey: apiKey, provider = 'islet', WebSocket } = config
  if (provider !== 'islet')
    throw new IsletError('not_supported', `There is no provider ${String(provider).slice(0, 64)} here.`, {
      hint: 'Leave provider out: all sandboxes are of your own Islet server.',
    })
  const islet = new Islet({ url, apiKey, WebSocket })
  const wrapped = (native: Native): Sandbox => new Sandbox(native, islet.url)
  const getById = (id: string) => orNull(islet.sandboxes.connect(id).then(wrapped))
  return {
    sandbox: {
      async create(options = {}) {
        refuseUnknown('compute.sandbox.create', options, CREATE)
        return wrapped(await islet.sandboxes.create(toCreate(options)))
      },
      async findOrCreate(options) {
        refuseUnknown('compute.sandbox.findOrCreate', options, CREATE)
        const { name, ...rest } = toCreate(options)
        return wrapped(await islet.sandboxes.getOrCreate(name!, rest))
      },
      getById,
      find({ name }) {
        return getById(name)
      },
      async list() {
        const all: Sandbox[] = []
        for await (const { id } of islet.sandboxes.all()) all.push(wrapped(islet.sandboxes.handle(id)))
        return all
      },
      async destroy(sandboxId) {
        await orNull(islet.sandboxes.delete(sandboxId))
      },
    },
  }
}

function toCreate(options: CreateSandboxOptions): CreateOptions {
  const { timeout, templateId, snapshotId, metadata, envs, name, directory, network = true } = options
  return {
    runtime: templateId,
    snapshot: snapshotId,
    timeout: { idle: timeout },
    metadata: metadata as CreateOptions['metadata'],
    env: envs,
    name,
    workdir: directory,
    // Absent means off. An engine without a wall has no switch for it.
    network: network ? { enabled: true } : undefined,
  }
}

async function orNull<T>(work: Promise<T>): Promise<T | null> {
  try {
    return await work
  } catch (error) {
    if (hasCode(error, 'sandbox_not_found')) return null
    throw error
  }
}
