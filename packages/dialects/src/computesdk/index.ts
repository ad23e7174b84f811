// The interface of ComputeSDK.
export {
  type FileWatcher,
  IsletError,
  type SignalService,
  type TerminalCommand as Command,
  type TerminalInfo as TerminalResponse,
  type TerminalInstance,
  type WaitOptions,
  type WatcherInfo,
} from '@islet/sdk'
export type { MagicLinkInfo, MagicLinks, SessionTokenInfo, SessionTokens } from './access.ts'
export { type Compute, type ComputeConfig, type CreateSandboxOptions, compute } from './compute.ts'
export type { BatchWriteResult, FileInfo, FileManager } from './file.ts'
export type { FileEntry, FileSystem, OverlayInfo, OverlayManager } from './filesystem.ts'
export {
  type CodeResult,
  type CommandResult,
  type RunCommandOptions,
  type Runtime,
  Sandbox,
  type SandboxConfig,
  type SandboxInfo,
} from './sandbox.ts'
export type { HealthCheckConfig, ServerInfo, ServerManager, StartServerOptions } from './server.ts'
