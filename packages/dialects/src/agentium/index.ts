// The documented interface of Agentium's SandboxAgent: a workspace of files and a shell that stays between runs.
export { DaytonaSandbox, type DaytonaSandboxOptions } from './remotes/daytona.ts'
export { E2BSandbox, type E2BSandboxOptions } from './remotes/e2b.ts'
export { IsletSandbox, type IsletSandboxOptions, isletSandbox } from './remotes/islet.ts'
export { SandboxAgent } from './sandbox-agent.ts'
export { createSandboxTools, type SandboxTool, type SandboxToolsOptions } from './tools.ts'
export type {
  AnySandbox,
  CloudSandbox,
  FileEncoding,
  GitClone,
  SandboxAgentConfig,
  SandboxBackend,
  SandboxLanguage,
  SandboxRunOptions,
  SandboxRunResult,
  SandboxShellOptions,
  SeededFile,
  SnapshotFile,
  SnapshotOptions,
  WorkspaceSnapshot,
  WorkspaceSpec,
} from './types.ts'
