import {
  type EventType,
  type InputSource,
  Islet,
  type OutputOfRun,
  type Sandbox,
  type SandboxDetail,
} from '@islet/sdk'
import { given, type SandboxInfo, type SandboxStatus, statusOf } from './info.ts'
import { createJob, type JobInstance, listJobs } from './jobs.ts'
import {
  type FileToWrite,
  NAME,
  ORG,
  runtimeIdOf,
  type SandboxCreateOptions,
  toCreateOptions,
} from './options.ts'
import { SandboxInstance } from './sandbox.ts'
import {
  type DiskCheckpoint,
  lineageOf,
  type SnapshotCreateOptions,
  type SnapshotInfo,
  type SnapshotLineageEntry,
  type SnapshotLineageParams,
  type SnapshotListParams,
  toCheckpoint,
  toSnapshot,
} from './saved.ts'

export interface Logger {
  debug(message: string, fields?: object): void
}

export interface SandboxClientOptions {
  /** Default: AGENTUITY_SDK_KEY, then AGENTUITY_CLI_KEY, then what every client of Islet uses. */
  apiKey?: string
  /** The address of an Islet server. Default: AGENTUITY_SANDBOX_URL, then what every client of Islet uses. */
  url?: string
  /** A label: sandboxes get it, and only those that have it are listed. */
  orgId?: string
  /** Is told what sandboxes are created, run and destroyed. */
  logger?: Logger
}

export interface SandboxRunOptions extends SandboxCreateOptions {
  command: { exec: string[]; files?: FileToWrite[]; mode?: 'oneshot' }
}

export interface RunStreams {
  stdout?: OutputOfRun['stdout']
  stderr?: OutputOfRun['stderr']
  stdin?: InputSource
  /** Aborting ends the command, removes the sandbox and rejects with a DOMException named AbortError. */
  signal?: AbortSignal
}

export interface SandboxRunResult {
  sandboxId: string
  exitCode: number
  durationMs: number
  stdout?: string
  stderr?: string
}

export interface ListParams {
  name?: string
  projectId?: string
  snapshotId?: string
  status?: SandboxStatus
  limit?: number
  offset?: number
}

export interface RuntimeInfo {
  id: string
  name: string
  description?: string
}

export interface SandboxEvent {
  eventId: string
  sandboxId: string
  type: EventType
  event: Record<string, unknown>
  createdAt: string
}

const PAGE = 50
/** Statuses of the server; of those that are missing here there is never a sandbox. */
const STATUSES = {
  creating: 'creating',
  idle: 'running',
  running: 'running',
  paused: 'paused',
  suspended: 'hibernated',
  terminated: 'stopped',
  failed: 'failed',
} as const

export class SandboxClient {
  /** The Islet client behind it, for what this interface lacks. */
  readonly islet: Islet
  readonly #orgId: string | undefined
  readonly #logger: Logger | undefined

  constructor({ apiKey, url, orgId, logger }: SandboxClientOptions = {}) {
    this.islet = new Islet({
      apiKey: apiKey ?? setting('AGENTUITY_SDK_KEY') ?? setting('AGENTUITY_CLI_KEY'),
      url: url ?? setting('AGENTUITY_SANDBOX_URL'),
    })
    this.#orgId = orgId
    this.#logger = logger
  }

  /** Runs one command in a new sandbox, which is removed before this resolves. */
  async run(options: SandboxRunOptions, streams: RunStreams = {}): Promise<SandboxRunResult> {
    const { command, files = [], ...rest } = options
    const { timeout, ...created } = toCreateOptions(rest, this.#orgId)
    const oneShot = { ...created, files: [...files, ...(command.files ?? [])], timeout: timeout?.execution }
    const result = await this.islet.run(command.exec, { ...oneShot, ...streams })
    const { sandboxId, exitCode, durationMs, stdout, stderr } = result
    this.#logger?.debug('sandbox run finished', { sandboxId, exitCode })
    return { sandboxId, exitCode, durationMs, stdout, stderr }
  }

  async create(options: SandboxCreateOptions = {}): Promise<SandboxInstance> {
    const sandbox = await this.islet.sandboxes.create(toCreateOptions(options, this.#orgId))
    this.#logger?.debug('sandbox created', { sandboxId: sandbox.id })
    return new SandboxInstance(sandbox)
  }

  async connect(sandboxId: string): Promise<SandboxInstance> {
    return new SandboxInstance(await this.#sandbox(sandboxId))
  }

  async get(sandboxId: string): Promise<SandboxInfo> {
    return (await this.connect(sandboxId)).get()
  }

  /** Newest first. */
  async list(params: ListParams = {}): Promise<{ sandboxes: SandboxInfo[]; total: number }> {
    const { name, projectId: project, snapshotId, status, limit = PAGE, offset = 0 } = params
    const own = status && (status === 'deleted' ? 'stopped' : STATUSES[status as keyof typeof STATUSES])
    if (status && !own) return { sandboxes: [], total: 0 }
    const labels = Object.entries(given({ [NAME]: name, [ORG]: this.#orgId }))
    const filter = { status: own, project, metadata: labels.map(([label, value]) => `${label}=${value}`) }
    const isWanted = (each: SandboxDetail) =>
      (own !== 'running' || statusOf(each) === status) &&
      (snapshotId === undefined || each.origin?.id === snapshotId)
    if (own !== 'running' && snapshotId === undefined) {
      const page = await this.islet.sandboxes.list({ ...filter, limit, offset })
      return { sandboxes: await this.#infos(page.sandboxes), total: page.total }
    }
    // The server does not know these filters.
    const found: SandboxDetail[] = []
    for await (const each of this.islet.sandboxes.all(filter)) if (isWanted(each)) found.push(each)
    return { sandboxes: await this.#infos(found.slice(offset, offset + limit)), total: found.length }
  }

  async destroy(sandboxId: string): Promise<void> {
    await this.islet.sandboxes.delete(sandboxId)
    this.#logger?.debug('sandbox destroyed', { sandboxId })
  }

  async listRuntimes(
    params: { limit?: number; offset?: number } = {},
  ): Promise<{ runtimes: RuntimeInfo[]; total: number }> {
    const { limit = PAGE, offset = 0 } = params
    const all = await this.islet.runtimes.list()
    const runtimes = all.map(({ name, description }) => ({ id: runtimeIdOf(name), name, description }))
    return { runtimes: runtimes.slice(offset, offset + limit), total: all.length }
  }

  /** Starts a command that goes on when this client is gone. */
  async createJob(sandboxId: string, job: { command: string[] }): Promise<JobInstance> {
    return createJob(await this.#sandbox(sandboxId), job)
  }

  /** Newest first. */
  async listJobs(sandboxId: string, limit = PAGE): Promise<{ jobs: JobInstance[] }> {
    return { jobs: await listJobs(await this.#sandbox(sandboxId), limit) }
  }

  /** Code `conflict` if the sandbox has a checkpoint with this name. */
  async createDiskCheckpoint(sandboxId: string, name: string): Promise<DiskCheckpoint> {
    const sandbox = await this.#sandbox(sandboxId)
    return toCheckpoint(sandbox, await sandbox.createCheckpoint(name))
  }

  /** Oldest first. */
  async listDiskCheckpoints(sandboxId: string): Promise<DiskCheckpoint[]> {
    const sandbox = await this.#sandbox(sandboxId)
    return (await sandbox.listCheckpoints()).map((each) => toCheckpoint(sandbox, each))
  }

  async createSnapshot(sandboxId: string, options: SnapshotCreateOptions = {}): Promise<SnapshotInfo> {
    return toSnapshot(await this.islet.snapshots.create({ sandbox: sandboxId }, options))
  }

  async getSnapshot(snapshotId: string): Promise<SnapshotInfo> {
    return toSnapshot(await this.islet.snapshots.get(snapshotId))
  }

  /** Newest first. */
  async listSnapshots(
    params: SnapshotListParams = {},
  ): Promise<{ snapshots: SnapshotInfo[]; total: number }> {
    const { sandboxId: sandbox, limit = PAGE, offset } = params
    const { snapshots, total } = await this.islet.snapshots.list({ sandbox, limit, offset })
    return { snapshots: snapshots.map(toSnapshot), total }
  }

  /** null removes the tag. If another snapshot has the tag, the tag moves. */
  async tagSnapshot(snapshotId: string, tag: string | null): Promise<SnapshotInfo> {
    return toSnapshot(await this.islet.snapshots.tag(snapshotId, tag))
  }

  deleteSnapshot(snapshotId: string): Promise<void> {
    return this.islet.snapshots.delete(snapshotId)
  }

  getSnapshotLineage(
    params: SnapshotLineageParams,
  ): Promise<{ lineage: SnapshotLineageEntry[]; total: number }> {
    return lineageOf(this.islet, params)
  }

  /** The history of a sandbox, also of one that is gone. */
  async listEvents(
    sandboxId: string,
    params: { limit?: number; direction?: 'asc' | 'desc' } = {},
  ): Promise<{ events: SandboxEvent[] }> {
    const { limit = PAGE, direction = 'asc' } = params
    const { events } = await this.islet.events(sandboxId).list({ limit, direction })
    return {
      events: events.map(({ id, type, data, createdAt }) => ({
        eventId: id,
        sandboxId,
        type,
        event: data,
        createdAt,
      })),
    }
  }

  #sandbox(sandboxId: string): Promise<Sandbox> {
    return this.islet.sandboxes.connect(sandboxId)
  }

  #infos(records: SandboxDetail[]): Promise<SandboxInfo[]> {
    return Promise.all(records.map(({ id }) => this.get(id)))
  }
}

/** Browsers have no environment. */
function setting(name: string): string | undefined {
  return globalThis.process?.env?.[name] || undefined
}
