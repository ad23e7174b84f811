export {
  type ListParams,
  type Logger,
  type RunStreams,
  type RuntimeInfo,
  SandboxClient,
  type SandboxClientOptions,
  type SandboxEvent,
  type SandboxRunOptions,
  type SandboxRunResult,
} from './client.ts'
export type { Execution, ExecutionStatus, JobStatus, SandboxInfo, SandboxStatus } from './info.ts'
export type { JobInstance } from './jobs.ts'
export type {
  FileToWrite,
  SandboxCreateOptions,
  SandboxResources,
  SandboxTimeouts,
  StreamConfig,
} from './options.ts'
export type { ExecuteOptions, SandboxFileInfo, SandboxInstance, SandboxPauseResult } from './sandbox.ts'
export type {
  DiskCheckpoint,
  SnapshotCreateOptions,
  SnapshotInfo,
  SnapshotLineageEntry,
  SnapshotLineageParams,
  SnapshotListParams,
} from './saved.ts'
