import {
  type CreatePreview,
  hasCode,
  IsletError,
  type Names,
  Sandbox as Native,
  refuseUnknown,
  type SandboxStatus,
} from '@islet/sdk'
import { Agent } from './agent.ts'
import { Exec } from './exec.ts'
import { failing, seconds } from './failed.ts'
import { Filesystem } from './files.ts'
import { Pty } from './pty.ts'
import {
  type CheckpointInfo,
  type ConnectionOpts,
  type FromCheckpointOpts,
  type PatchInfo,
  type PatchOpts,
  type PatchResult,
  type PreviewURLOpts,
  type PreviewURLResult,
  type SandboxOpts,
  toCheckpoint,
  toPatch,
  toPreview,
} from './types.ts'

const IDLE_SECONDS = 300
const MAX_CPUS = 4
const MAX_MEMORY_MB = 2048

const CONNECTION: Names<ConnectionOpts> = { apiKey: 1, apiUrl: 1 }
const CREATE: Names<SandboxOpts> = {
  ...CONNECTION,
  template: 1,
  timeout: 1,
  envs: 1,
  metadata: 1,
  cpuCount: 1,
  memoryMB: 1,
  network: 1,
}
const FROM_CHECKPOINT: Names<FromCheckpointOpts> = { ...CONNECTION, timeout: 1, envs: 1 }
const PATCH: Names<PatchOpts> = { ...CONNECTION, script: 1, description: 1 }

export class Sandbox {
  readonly sandboxId: string
  readonly agent: Agent
  readonly exec: Exec
  readonly files: Filesystem
  readonly pty: Pty
  readonly #native: Native

  static async create(opts: SandboxOpts = {}): Promise<Sandbox> {
    refuseUnknown('Sandbox.create', opts, CREATE)
    const {
      template = 'base',
      timeout = IDLE_SECONDS,
      envs,
      metadata,
      cpuCount,
      memoryMB,
      network = true,
    } = opts
    const native = Native.create({
      ...serverOf(opts),
      runtime: template,
      timeout: { idle: seconds(timeout, 'timeout') },
      env: envs,
      metadata,
      resources: {
        cpu: atMost(MAX_CPUS, cpuCount, 'cpuCount'),
        memory: mebibytes(atMost(MAX_MEMORY_MB, memoryMB, 'memoryMB')),
      },
      // Absent means off. An engine without a wall has no switch for it.
      network: network ? { enabled: true } : undefined,
    })
    return new Sandbox(await failing('Failed to create sandbox', native))
  }

  static async connect(sandboxId: string, opts: ConnectionOpts = {}): Promise<Sandbox> {
    refuseUnknown('Sandbox.connect', opts, CONNECTION)
    const native = Native.connect(sandboxId, serverOf(opts))
    return new Sandbox(await failing(`Failed to connect to sandbox ${sandboxId}`, native))
  }

  static async createFromCheckpoint(checkpointId: string, opts: FromCheckpointOpts = {}): Promise<Sandbox> {
    refuseUnknown('Sandbox.createFromCheckpoint', opts, FROM_CHECKPOINT)
    const { timeout = IDLE_SECONDS, envs } = opts
    const native = Native.createFromCheckpoint(checkpointId, {
      ...serverOf(opts),
      timeout: { idle: seconds(timeout, 'timeout') },
      env: envs,
    })
    return new Sandbox(await failing('Failed to create sandbox from checkpoint', native))
  }

  static async createCheckpointPatch(checkpointId: string, opts: PatchOpts): Promise<PatchResult> {
    refuseUnknown('Sandbox.createCheckpointPatch', opts, PATCH)
    const { script, description } = opts
    const patch = Native.createCheckpointPatch(checkpointId, { ...serverOf(opts), script, description })
    return { patch: toPatch(await failing('Failed to create checkpoint patch', patch)) }
  }

  static async listCheckpointPatches(checkpointId: string, opts: ConnectionOpts = {}): Promise<PatchInfo[]> {
    refuseUnknown('Sandbox.listCheckpointPatches', opts, CONNECTION)
    const patches = Native.listCheckpointPatches(checkpointId, serverOf(opts))
    return (await failing('Failed to list checkpoint patches', patches)).map(toPatch)
  }

  /** Does nothing if there is no such patch. */
  static async deleteCheckpointPatch(
    checkpointId: string,
    patchId: string,
    opts: ConnectionOpts = {},
  ): Promise<void> {
    refuseUnknown('Sandbox.deleteCheckpointPatch', opts, CONNECTION)
    const deleted = Native.deleteCheckpointPatch(checkpointId, patchId, serverOf(opts))
    await failing('Failed to delete checkpoint patch', unlessMissing(deleted))
  }

  private constructor(native: Native) {
    this.#native = native
    this.sandboxId = native.id
    this.agent = new Agent(native)
    this.exec = new Exec(native)
    this.files = new Filesystem(native)
    this.pty = new Pty(native)
  }

  /** As of the last answer of the server: running, hibernated, stopped, error, or one of ours. */
  get status(): string {
    const status: SandboxStatus = this.#native.status
    return status === 'failed' ? 'error' : status
  }

  /** @deprecated Use `exec`. */
  get commands(): Exec {
    return this.exec
  }

  /** Does nothing if the sandbox is gone. */
  async kill(): Promise<void> {
    await failing('Failed to kill sandbox', this.#native.kill())
  }

  /** Never throws: false also if the server cannot be reached. */
  async isRunning(): Promise<boolean> {
    return this.#native.isRunning().catch(() => false)
  }

  async hibernate(): Promise<void> {
    await failing('Failed to hibernate sandbox', this.#native.hibernate())
  }

  /** Sets the idle timeout too: 300 seconds, if none is given. */
  async wake(opts: { timeout?: number } = {}): Promise<void> {
    refuseUnknown('sandbox.wake', opts, { timeout: 1 })
    const timeout = seconds(opts.timeout ?? IDLE_SECONDS, 'timeout')
    await failing('Failed to wake sandbox', this.#native.wake({ timeout }))
  }

  /** The idle timeout in seconds; 0: never. */
  async setTimeout(timeout: number): Promise<void> {
    await failing('Failed to set timeout', this.#native.setTimeout(seconds(timeout, 'timeout')))
  }

  async createCheckpoint(name: string): Promise<CheckpointInfo> {
    return toCheckpoint(await failing('Failed to create checkpoint', this.#native.createCheckpoint(name)))
  }

  /** Newest first. */
  async listCheckpoints(): Promise<CheckpointInfo[]> {
    const all = await failing('Failed to list checkpoints', this.#native.listCheckpoints())
    return all.map(toCheckpoint).reverse()
  }

  async restoreCheckpoint(checkpointId: string): Promise<void> {
    await failing('Failed to restore checkpoint', this.#native.restoreCheckpoint(checkpointId))
  }

  /** Does nothing if there is no such checkpoint. */
  async deleteCheckpoint(checkpointId: string): Promise<void> {
    const deleted = unlessMissing(this.#native.deleteCheckpoint(checkpointId))
    await failing('Failed to delete checkpoint', deleted)
  }

  /** The existing one, if the port has one and neither a domain nor an auth configuration is given. */
  async createPreviewURL(opts: PreviewURLOpts): Promise<PreviewURLResult> {
    refuseUnknown('sandbox.createPreviewURL', opts, { port: 1, domain: 1, authConfig: 1 })
    const { port, domain, authConfig } = opts
    const keep = domain === undefined && authConfig === undefined
    const asked: CreatePreview = { port, domain, authConfig: toAuth(authConfig), keep }
    return toPreview(await failing('Failed to create preview URL', this.#native.createPreviewURL(asked)))
  }

  async listPreviewURLs(): Promise<PreviewURLResult[]> {
    return (await failing('Failed to list preview URLs', this.#native.listPreviewURLs())).map(toPreview)
  }

  /** Does nothing if the port has none. */
  async deletePreviewURL(port: number): Promise<void> {
    await failing('Failed to delete preview URL', unlessMissing(this.#native.deletePreviewURL(port)))
  }
}

function serverOf({ apiKey, apiUrl }: ConnectionOpts): { apiKey?: string; url?: string } {
  return { apiKey, url: apiUrl }
}

function atMost(most: number, value: number | undefined, name: string): number | undefined {
  if (value === undefined || (value > 0 && value <= most)) return value
  const code = value > most ? 'limit_too_high' : 'bad_request'
  throw new IsletError(
    code,
    `${name} is more than 0 and at most ${most}, not ${String(value).slice(0, 64)}.`,
    {
      hint: `Give at most ${most}, or leave ${name} out.`,
    },
  )
}

function mebibytes(value: number | undefined): number | undefined {
  return value === undefined ? undefined : Math.round(value * 1024 * 1024)
}

async function unlessMissing(work: Promise<void>): Promise<void> {
  try {
    await work
  } catch (error) {
    if (!hasCode(error, 'checkpoint_not_found', 'patch_not_found', 'preview_not_found')) throw error
  }
}

/** A configuration that would not be enforced is refused. */
function toAuth(config: Record<string, unknown> = {}): CreatePreview['authConfig'] {
  const { type, scheme, token, ...others } = config
  const kind = type ?? scheme
  const isKnown = kind === 'token' || kind === 'bearer'
  const isText = token === undefined || typeof token === 'string'
  const isBoth = type !== undefined && scheme !== undefined
  if (Object.keys(config).length === 0) return undefined
  if (!isKnown || !isText || isBoth || Object.keys(others).length > 0)
    throw new IsletError('not_supported', 'Previews cannot be protected with this authConfig.', {
      hint: "Use { type: 'token' }, with a token of at least 16 characters or without one, or leave it out.",
    })
  return token === undefined || token === 'auto' ? { type: 'token' } : { type: 'token', token: String(token) }
}
