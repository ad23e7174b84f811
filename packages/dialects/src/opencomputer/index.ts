// The interface of the OpenComputer SDK. Durations are seconds.
export { IsletError } from '@islet/sdk'
export type {
  Agent,
  AgentAttachOpts,
  AgentConfig,
  AgentEvent,
  AgentSession,
  AgentSessionInfo,
  AgentStartOpts,
  McpServerConfig,
} from './agent.ts'
export type {
  Exec,
  ExecAttachOpts,
  ExecSession,
  ExecSessionInfo,
  ExecStartOpts,
  ProcessResult,
  RunOpts,
} from './exec.ts'
export type { EntryInfo, Filesystem } from './files.ts'
export type { Pty, PtyOpts, PtySession } from './pty.ts'
export { Sandbox } from './sandbox.ts'
export type {
  CheckpointInfo,
  ConnectionOpts,
  FromCheckpointOpts,
  PatchInfo,
  PatchOpts,
  PatchResult,
  PreviewURLOpts,
  PreviewURLResult,
  SandboxOpts,
} from './types.ts'
