// The documented shapes of SandboxAgent. Fields that the document does not have are marked "also".

/** An interpreter: `node --eval`, `python3 -c` or `/bin/sh -c`. */
export type SandboxLanguage = 'node' | 'python' | 'shell'
export type FileEncoding = 'utf8' | 'base64'
export type SandboxBackend = 'unix-local' | 'docker' | 'remote'

export interface SeededFile {
  path: string
  contents: string
  encoding?: FileEncoding
}

export interface GitClone {
  repo: string
  /** A directory of the workspace that is empty or does not exist. */
  path: string
  /** A branch, a tag or a commit. Default: the default branch. With `depth`, a commit is its whole id. */
  ref?: string
  /** Also: fetch only this many commits. Default: all. */
  depth?: number
  /** Also. Default: 300. */
  timeoutSeconds?: number
}

export interface WorkspaceSpec {
  /** Written by `start`. */
  files?: readonly SeededFile[]
  /** Cloned by `start`, after the files are written. */
  gitClones?: readonly GitClone[]
  /** Variables of every run. */
  env?: Record<string, string>
}

export interface SandboxAgentConfig {
  /** Default: unix-local, which has no wall: code runs as the user of this process. */
  backend?: SandboxBackend
  /** For the backend `remote`. */
  remote?: CloudSandbox
  workspace?: WorkspaceSpec
  /** For the backend `docker`. Default: node:20-alpine. */
  dockerImage?: string
}

export interface SandboxShellOptions {
  /** Then everything that the run started is killed. Default: 30. */
  timeoutSeconds?: number
  env?: Record<string, string>
  /** Also: a directory of the workspace. Default: the workspace. */
  cwd?: string
  /** Also: aborting kills the run, which rejects with an `AbortError`. */
  signal?: AbortSignal
}

export interface SandboxRunOptions extends SandboxShellOptions {
  /** Default of SandboxAgent: node. Default of a CloudSandbox: python. */
  language?: SandboxLanguage
}

export interface SandboxRunResult {
  /** stdout, then stderr. */
  output: string
  /** 124 after a timeout; 128 + n for a death by signal n. */
  exitCode?: number
  timedOut?: boolean
  /** Also. */
  stdout?: string
  /** Also. */
  stderr?: string
  /** Also: the output was longer than 16 MiB and was cut. */
  truncated?: boolean
}

export interface SnapshotFile {
  path: string
  /** Empty for directories and symlinks. */
  contents: string
  encoding?: FileEncoding
  /** Also: permission bits. Default: 0o644 for files, 0o755 for directories. */
  mode?: number
  /** Also. Default: file. Directories have an entry only if they are empty or their mode is not 0o755. */
  type?: 'file' | 'directory' | 'symlink'
  /** Also: where a symlink points, as it is written in the symlink. */
  target?: string
}

/** Plain JSON. */
export interface WorkspaceSnapshot {
  /** Milliseconds since 1970. */
  takenAt: number
  files: SnapshotFile[]
  env: Record<string, string>
  /** Also: 1, if the snapshot is ours. */
  version?: number
  /** Also: a snapshot that the remote keeps; `files` is then empty. */
  snapshotId?: string
}

export interface SnapshotOptions {
  /** Names (`node_modules`) at any depth, or paths (`build/cache`) from the root of the workspace. Default: none. */
  ignore?: readonly string[]
  /** Fail with `limit_exceeded` if the files are larger together. Default: 256 MiB. */
  maxBytes?: number
}

/** A computer elsewhere. `SandboxAgent` with the backend `remote` works with any object that has these methods. */
export interface CloudSandbox {
  readonly providerId?: string
  start(): Promise<void>
  run(code: string, options?: SandboxRunOptions): Promise<SandboxRunResult>
  shell?(command: string, options?: SandboxShellOptions): Promise<SandboxRunResult>
  writeFile(path: string, contents: string, encoding?: FileEncoding): Promise<void>
  readFile(path: string, encoding?: FileEncoding): Promise<string | null>
  close(): Promise<void>
  /** Also: without it, snapshots of this remote have no files. */
  snapshot?(options: Required<SnapshotOptions>): Promise<{ files: SnapshotFile[]; snapshotId?: string }>
  /** Also: starts from a snapshot that the remote keeps, instead of `start`. */
  resume?(snapshotId: string): Promise<void>
}

/** What all methods of a sandbox share, so that tools work with a SandboxAgent and with a CloudSandbox. */
export type AnySandbox = Pick<CloudSandbox, 'run' | 'writeFile' | 'readFile'>

export const LANGUAGES: readonly SandboxLanguage[] = ['node', 'python', 'shell']
export const ENCODINGS: readonly FileEncoding[] = ['utf8', 'base64']
export const BACKENDS: readonly SandboxBackend[] = ['unix-local', 'docker', 'remote']
export const DEFAULT_IMAGE = 'node:20-alpine'
export const DEFAULT_TIMEOUT_SECONDS = 30
export const CLONE_TIMEOUT_SECONDS = 300
export const SNAPSHOT_BYTES = 256 * 1024 * 1024
