export type {
  AgentSessionInfo,
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
  MagicLink,
  Outcome,
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
  SessionToken,
  SessionTokenInfo,
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
export type { AttachAgentOptions, McpServerConfig, StartAgentOptions } from './agent/agents.ts'
export { type ClaudeInsideOptions, type ClaudeSpawn, claudeInside } from './agent/claude-inside.ts'
export type { AgentEvent, AgentHandlers } from './agent/output.ts'
export type { AgentConfig, AgentSession } from './agent/session.ts'
export type { TokenSource } from './client/credential.ts'
export { dataDirectory } from './client/local.ts'
export { type ClientOptions, DEFAULT_URL, resolveSettings } from './client/settings.ts'
export { type AnyErrorCode, CLIENT_ERRORS, type ClientErrorCode, hasCode } from './errors.ts'
export type { FromCheckpointOptions, ListCheckpointsOptions } from './islet/checkpoints.ts'
export type { ImageStep, ImageWorkOptions } from './islet/images.ts'
export { Islet, type OneShotOptions } from './islet/islet.ts'
export type { CreateOptions, GetOrCreateOptions, ListOptions } from './islet/sandboxes.ts'
export type { ImportSnapshotOptions, SnapshotOptions, Snapshots } from './islet/snapshots.ts'
export { type Names, refuseUnknown } from './options.ts'
export type {
  AttachOptions,
  Command,
  CommandOptions,
  ExecSession,
  RunOptions,
  SpawnOptions,
  StartOptions,
  StreamUrlOptions,
} from './process/exec.ts'
export type { InputSource } from './process/input-source.ts'
export type { NodeWritable, OutputOfRun } from './process/output-target.ts'
export type { PtyOptions, PtySession } from './process/pty.ts'
export type { ProcessResult } from './process/session.ts'
export type { TerminalEvents, TerminalInstance } from './process/terminal.ts'
export type {
  TerminalCommand,
  TerminalCommandOptions,
  TerminalCommands,
} from './process/terminal-command.ts'
export type { TerminalOptions, Terminals } from './process/terminals.ts'
export type { RunCodeOptions } from './sandbox/code.ts'
export type { EnvFiles } from './sandbox/env-files.ts'
export type { Events, EventsUrlOptions, FollowEventsOptions, ListEventsOptions } from './sandbox/events.ts'
export type { FileWatcher, WatcherEvents } from './sandbox/file-watcher.ts'
export type { FileOperation, Files, ReadOptions, UrlOptions, WriteOptions } from './sandbox/files.ts'
export type { ForkOptions, ForkResult, ForkResults } from './sandbox/fork.ts'
export type { MagicLinkOptions, MagicLinks } from './sandbox/magic-links.ts'
export type { OverlayOptions, Overlays, WaitOptions } from './sandbox/overlays.ts'
export { type RunCommandOptions, Sandbox, type UrlOfPort, type WakeOptions } from './sandbox/sandbox.ts'
export type { ServiceStatus, Services, WaitForOptions } from './sandbox/services.ts'
export type { SessionTokenOptions, SessionTokens } from './sandbox/session-tokens.ts'
export type {
  CustomSignalEvent,
  ErrorSignalEvent,
  PortSignalEvent,
  SignalEvent,
  SignalEvents,
  SignalService,
} from './sandbox/signal-service.ts'
export type { Signals } from './sandbox/signals.ts'
export type { Watchers, WatchOptions } from './sandbox/watchers.ts'
export type { Content } from './transport/body.ts'
export type { FileToWrite } from './transport/files.ts'
export type { Socket, SocketConstructor } from './transport/socket.ts'
