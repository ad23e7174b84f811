// Records of the server as the interface has them. Optional fields are left out, never null.
import type { ProcessInfo, SandboxInfo as Record_, Sandbox, SandboxDetail } from '@islet/sdk'
import { NAME, ORG, runtimeIdOf } from './options.ts'

export type SandboxStatus =
  | 'creating'
  | 'idle'
  | 'running'
  | 'paused'
  | 'stopping'
  | 'suspended'
  | 'terminated'
  | 'failed'
  | 'deleted'

export type ExecutionStatus = 'queued' | 'running' | 'completed' | 'failed' | 'timeout' | 'cancelled'
export type JobStatus = 'pending' | 'running' | 'completed' | 'failed' | 'cancelled'

export interface SandboxInfo {
  sandboxId: string
  name?: string
  description?: string
  status: SandboxStatus
  mode: 'interactive'
  createdAt: string
  runtime: { id: string; name: string }
  snapshot?: { id: string }
  /** How many commands were executed. */
  executions: number
  networkEnabled: boolean
  networkPort?: number
  /** Where the port of `network.port` is reached. */
  url?: string
  org: { id: string; name: string }
  projectId?: string
  timeout: { idle: string; execution: string; paused: string }
  resources: { memory: string; cpu: string; disk: string }
  metadata: Record<string, unknown>
  /** When a paused sandbox is removed. */
  terminatesAt?: string
  /** Why it failed or ended. */
  lastError?: string
}

const ORG_NAME = 'islet'
const MIB = 1024 * 1024

export function toInfo(record: SandboxDetail, executions: number): SandboxInfo {
  const { [NAME]: name, [ORG]: org = ORG_NAME, ...metadata } = record.metadata
  const { timeouts, resources, network, origin } = record
  return {
    sandboxId: record.id,
    ...given({ name: name as string | undefined, description: record.description, url: record.url }),
    status: statusOf(record),
    mode: 'interactive',
    createdAt: record.createdAt,
    runtime: { id: runtimeIdOf(record.runtime), name: record.runtime },
    ...(origin?.kind === 'snapshot' && { snapshot: { id: origin.id } }),
    executions,
    networkEnabled: network.enabled,
    ...given({ networkPort: network.port, projectId: record.project, terminatesAt: record.terminatesAt }),
    org: { id: String(org), name: String(org) },
    timeout: {
      idle: `${timeouts.idleMs / 1000}s`,
      execution: `${timeouts.executionMs / 1000}s`,
      paused: `${timeouts.pausedMs / 1000}s`,
    },
    resources: {
      memory: `${resources.memoryBytes / MIB}Mi`,
      cpu: `${resources.cpuMillis}m`,
      disk: `${resources.diskBytes / MIB}Mi`,
    },
    ...given({ lastError: record.reason }),
    metadata,
  }
}

/** `running` while a command is executed, else `idle`. */
export function statusOf(
  record: Pick<Record_, 'status'> & Partial<Pick<SandboxDetail, 'awake'>>,
): SandboxStatus {
  if (record.status === 'running')
    return record.awake?.reasons.some(({ kind }) => kind === 'command') ? 'running' : 'idle'
  if (record.status === 'hibernated') return 'suspended'
  return record.status === 'stopped' ? 'terminated' : record.status
}

export interface Execution {
  executionId: string
  status: ExecutionStatus
  exitCode?: number
  durationMs?: number
  /** Fetch it for the output; needs no key. */
  stdoutStreamUrl?: string
  stderrStreamUrl?: string
  outputTruncated?: boolean
  autoResumed?: boolean
}

/** The URLs of the output of a process. */
export async function streamUrls(
  sandbox: Sandbox,
  processId: string,
  wanted = { stdout: true, stderr: true },
): Promise<{ stdoutStreamUrl?: string; stderrStreamUrl?: string }> {
  const url = (channel: 'stdout' | 'stderr') =>
    wanted[channel] ? sandbox.exec.streamUrl(processId, { channel }) : undefined
  const [stdoutStreamUrl, stderrStreamUrl] = await Promise.all([url('stdout'), url('stderr')])
  return given({ stdoutStreamUrl, stderrStreamUrl })
}

export interface JobInfo {
  jobId: string
  sandboxId: string
  command: string[]
  status: JobStatus
  exitCode?: number
  startedAt?: string
  completedAt?: string
  error?: string
}

export function toJob(info: ProcessInfo): JobInfo {
  return {
    jobId: info.id,
    sandboxId: info.sandboxId,
    command: [info.command].flat(),
    status: info.jobStatus,
    startedAt: info.startedAt,
    ...given({ exitCode: info.result?.exitCode, completedAt: info.endedAt, error: info.reason }),
  }
}

/** Without the fields that are null or undefined. */
export function given<Fields extends object>(
  fields: Fields,
): { [Name in keyof Fields]?: NonNullable<Fields[Name]> } {
  return Object.fromEntries(
    Object.entries(fields).filter(([, value]) => value !== null && value !== undefined),
  ) as {
    [Name in keyof Fields]?: NonNullable<Fields[Name]>
  }
}
