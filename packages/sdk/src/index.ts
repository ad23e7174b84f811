export type {
  Awake,
  AwakeReason,
  BatchResult,
  CheckpointInfo,
  CheckpointPage,
  CodeResult,
  CreatePreview,
  ErrorCode,
  EventPage,
  EventType,
  ExecResult,
  FileChange,
  FileEntry,
  ImageInfo,
  Language,
  LanguageName,
  ListeningPort,
  OverlayInfo,
  PatchInfo,
  PatchRun,
  Preview,
  ProcessInfo,
  ProcessOutput,
  Prune,
  Pruned,
  RestoredSandbox,
  RunResult,
  RuntimeInfo,
  Sandbox as SandboxInfo,
  SandboxDetail,
  SandboxEvent,
  SandboxPage,
  SandboxStatus,
  SandboxToken,
  SandboxUsage,
  ServerInfo,
  ServiceInfo,
  ServiceLogs,
  SignalStatus,
  SnapshotInfo,
  SnapshotLineage,
  SnapshotPage,
  StartedProcess,
  StartService,
  StoreEntry,
  StoreOperation,
  TerminalInfo,
  Timeouts,
  TimeoutsInfo,
  WatcherInfo,
  WokenSandbox,
} from '@islet/contract/client'
export { IsletError } from '@islet/contract/client'
export type {
  ForkOptions,
  ForkResult,
  ForkResults,
  FromCheckpointOptions,
  ListCheckpointsOptions,
} from './checkpoints.ts'
export type { RunCodeOptions } from './code.ts'
export type { TokenSource } from './credential.ts'
export { type AnyErrorCode, CLIENT_ERRORS, type ClientErrorCode, hasCode } from './errors.ts'
export type { Events, FollowEventsOptions, ListEventsOptions } from './events.ts'
export type {
  AttachOptions,
  Command,
  CommandOptions,
  ExecSession,
  RunOptions,
  SpawnOptions,
  StartOptions,
} from './exec.ts'
export type { FileWatcher, WatcherEvents } from './file-watcher.ts'
export type { FileOperation, Files, ReadOptions, UrlOptions, WriteOptions } from './files.ts'
export type { ImageStep, ImageWorkOptions } from './images.ts'
export { Islet, type OneShotOptions } from './islet.ts'
export type { WakeOptions } from './life.ts'
export { dataDirectory } from './local.ts'
export type { OverlayOptions, WaitOptions } from './overlays.ts'
export type { UrlOfPort } from './previews.ts'
export type { PtyOptions, PtySession } from './pty.ts'
export { type RunCommandOptions, Sandbox } from './sandbox.ts'
export type { CreateOptions, GetOrCreateOptions, ListOptions } from './sandboxes.ts'
export type { ServiceStatus, Services, WaitForOptions } from './services.ts'
export type { ProcessResult } from './session.ts'
export { type ClientOptions, DEFAULT_URL, resolveSettings } from './settings.ts'
export type {
  CustomSignalEvent,
  ErrorSignalEvent,
  PortSignalEvent,
  SignalEvent,
  SignalEvents,
  SignalService,
} from './signal-service.ts'
export type { ImportSnapshotOptions, SnapshotOptions, Snapshots } from './snapshots.ts'
export type { TerminalEvents, TerminalInstance } from './terminal.ts'
export type { TerminalCommand, TerminalCommandOptions } from './terminal-command.ts'
export type { TerminalOptions } from './terminals.ts'
export type { Content } from './transport/body.ts'
export type { Socket, SocketConstructor } from './transport/socket.ts'
export type { WatchOptions } from './watchers.ts'
