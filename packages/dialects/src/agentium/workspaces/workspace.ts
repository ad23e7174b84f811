// What SandboxAgent needs of a backend. Everything given to a workspace has been checked.
import type {
  FileEncoding,
  GitClone,
  SandboxLanguage,
  SandboxRunResult,
  SandboxShellOptions,
  SnapshotFile,
  SnapshotOptions,
  WorkspaceSnapshot,
} from '../types.ts'

export type Captured = Pick<WorkspaceSnapshot, 'files' | 'snapshotId'>

export interface RunRequest extends SandboxShellOptions {
  language: SandboxLanguage
  timeoutSeconds: number
  /** Those of the workspace and those of the call. */
  env: Record<string, string>
}

export interface Workspace {
  run(code: string, request: RunRequest): Promise<SandboxRunResult>
  writeFile(path: string, contents: string, encoding: FileEncoding): Promise<void>
  /** Null only if there is no such file. */
  readFile(path: string, encoding: FileEncoding): Promise<string | null>
  clone(clone: GitClone, env: Record<string, string>): Promise<void>
  capture(options: Required<SnapshotOptions>): Promise<Captured>
  /** Into a workspace that is new. */
  restore(files: readonly SnapshotFile[]): Promise<void>
  /** Ends what runs in it and removes it. */
  close(): Promise<void>
}
