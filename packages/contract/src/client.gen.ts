// Printed by npm run gen from the schemas and routes of the contract. Do not edit.
// biome-ignore-all format: printed by a script
// biome-ignore-all lint: printed by a script
import type { Shape } from './shape.ts'

export type Json = string | number | boolean | null | Json[] | { [key: string]: Json }
export type McpServer = {
  type?: "stdio" | undefined
  command: string
  args?: string[] | undefined
  env?: Record<string, string> | undefined
} | {
  type: "http" | "sse"
  url: string
  headers?: Record<string, string> | undefined
}
export type ConfigureAgent = {
  /** Default: the one of the Agent SDK. */
  model?: string | undefined
  /** Replaces the system prompt of Claude Code. */
  systemPrompt?: string | undefined
  /** The only tools the agent has: names, or rules like Bash(git *). With it, bypassPermissions becomes dontAsk. Default: all. */
  allowedTools?: string[] | undefined
  /** As in the Agent SDK; nobody answers questions. Default: bypassPermissions. */
  permissionMode?: "default" | "acceptEdits" | "bypassPermissions" | "plan" | "dontAsk" | "auto" | undefined
  /** How often the model may be asked for one prompt. Default: 50. */
  maxTurns?: number | undefined
  mcpServers?: Record<string, McpServer> | undefined
  resume?: string | undefined
  cwd?: string | undefined
}
export type StartAgent = {
  /** Default: the one of the Agent SDK. */
  model?: string | undefined
  /** Replaces the system prompt of Claude Code. */
  systemPrompt?: string | undefined
  /** The only tools the agent has: names, or rules like Bash(git *). With it, bypassPermissions becomes dontAsk. Default: all. */
  allowedTools?: string[] | undefined
  /** As in the Agent SDK; nobody answers questions. Default: bypassPermissions. */
  permissionMode?: "default" | "acceptEdits" | "bypassPermissions" | "plan" | "dontAsk" | "auto" | undefined
  /** How often the model may be asked for one prompt. Default: 50. */
  maxTurns?: number | undefined
  mcpServers?: Record<string, McpServer> | undefined
  resume?: string | undefined
  cwd?: string | undefined
  /** The first prompt. Default: the session waits for one. */
  prompt?: string | undefined
  /** Added to the environment of the sandbox, which has the API key. */
  env?: Record<string, string> | undefined
  user?: string | undefined
  /** Kills the whole session after this time. Default: never. */
  timeout?: number | string | undefined
  keepOutput?: number | string | undefined
  /** The sandbox is not idle while the session runs. Default: true. */
  keepAwake?: boolean | undefined
  /** As for a process: kill it this long after its last client has left. */
  maxRunAfterDisconnect?: number | string | undefined
}
export type AgentSessionInfo = {
  /** The id of its process: attach to it, signal it, read its output. */
  sessionId: string
  sandboxId: string
  running: boolean
  startedAt: string
  endedAt: string | null
  exitCode: number | null
  /** The conversation, for resume; null before its first turn. */
  claudeSessionId: string | null
}
export type CreateCheckpoint = {
  /** Unique among the checkpoints of the sandbox. */
  name: string
}
export type CheckpointInfo = {
  id: string
  sandboxId: string
  name: string
  /** Whether memory is saved, so that processes continue after a restore. Files, env, store and services always are. */
  memory: boolean
  /** Size of the files that differ from the image, or, with stacked layers, from the saved state it is built on. Null: not measured yet. */
  sizeBytes: number | null
  /** How long the sandbox was frozen to save it. */
  frozenMs: number
  createdAt: string
}
export type ListCheckpoints = {
  name?: string | undefined
  sandbox?: string | undefined
  /** Default: 100. */
  limit?: number | undefined
  /** Of the last answer, for the next page. */
  cursor?: string | undefined
  /** Leave out this many from the beginning. */
  offset?: number | undefined
}
export type CheckpointPage = {
  checkpoints: CheckpointInfo[]
  /** How many there are, without limit and offset. */
  total: number
  cursor?: string | undefined
}
export type RestoredSandbox = {
  sandbox: Sandbox
  /** The services of the checkpoint, and whether they were started. */
  services: ({
    name: string
    outcome: "started" | "stopped" | "failed"
    reason: string | null
  })[]
  memory: boolean
}
export type Language = "python" | "node" | "typescript" | "deno" | "bun" | "shell"
type Alias = keyof typeof LANGUAGE_ALIASES
export type LanguageName = Language | Alias
export type RunCode = {
  code: string
  /** Aliases: py and python3 for python, javascript and js for node, ts for typescript, bash and sh for shell. Default: detected from the code. */
  language?: "python" | "node" | "typescript" | "deno" | "bun" | "shell" | "py" | "python3" | "javascript" | "js" | "ts" | "bash" | "sh" | undefined
  cwd?: string | undefined
  env?: Record<string, string> | undefined
  user?: string | undefined
  timeout?: number | string | undefined
  /** The encoding of stdout and stderr in the answer. Default: utf8. */
  encoding?: "utf8" | "base64" | undefined
  /** Limit of stdout and stderr together; the rest is cut and truncated is true. Default: 4 MiB. */
  maxOutputBytes?: number | undefined
  keepOutput?: number | string | undefined
}
export type CodeResult = {
  processId: string
  /** completed: exit code 0. timeout: it ran into its timeout. cancelled: killed on request. failed: any other end. */
  outcome: Outcome
  /** 128 + n when signal n ended it, 124 when it timed out. */
  exitCode: number
  /** The signal that ended it, like SIGKILL. */
  signal: string | null
  timedOut: boolean
  /** The memory limit of the sandbox killed a process while this command ran. */
  oom: boolean
  durationMs: number
  /** Why it may have failed, if the output shows it: the sandbox has no network. */
  hint?: string | undefined
  /** The sandbox was suspended and was woken for this call. */
  autoResumed: boolean
  stdout: string
  stderr: string
  truncated: boolean
  /** Bytes that were printed but are not in this answer; the end of the output is kept with the process. */
  droppedBytes: number
  language: Language
  /** stdout and stderr together, in the order they were printed. */
  output: string
}
export type EventType = "created" | "started" | "paused" | "resumed" | "hibernated" | "woken" | "restarted" | "restored" | "forked" | "failed" | "stopped" | "idle-timeout" | "paused-timeout" | "timeout.changed" | "network.changed" | "oom" | "disk_low" | "disk_ok" | "checkpoint.created" | "checkpoint.deleted" | "snapshot.created" | "snapshot.deleted" | "patch.applied" | "patch.failed" | "process.started" | "process.exited" | "process.lost" | "service.started" | "service.ready" | "service.restarted" | "service.stopped" | "service.failed"
export type SandboxEvent = {
  /** Larger for every later event of the server; pass it as `since` to continue from here. */
  id: string
  sandboxId: string
  type: EventType
  data: Record<string, Json>
  createdAt: string
}
export type EventPage = {
  events: SandboxEvent[]
  /** How many there are, without limit and offset. */
  total: number
  /** True if there are events beyond the limit. */
  more: boolean
}
export type SignEvents = {
  /** Milliseconds or like 30m. Default: 24 hours. */
  expiresIn?: number | string | undefined
}
export type EventsUrl = {
  url: string
  expiresAt: string
}
export type FileEntry = {
  name: string
  path: string
  type: "file" | "directory" | "symlink" | "other"
  sizeBytes: number
  /** Octal, like '0644'. */
  mode: string
  uid: number
  gid: number
  modifiedAt: string
  /** Where a symlink points. */
  target?: string | undefined
}
export type FileList = {
  path: string
  entries: FileEntry[]
  truncated: boolean
}
export type BatchOperation = {
  /** Absolute, or relative to the working directory of the sandbox. */
  path: string
  operation: "write" | "delete"
  /** Needed for a write. */
  content?: string | undefined
  /** Of content. Default: utf8. */
  encoding?: "utf8" | "base64" | undefined
  mode?: number | string | undefined
}
export type BatchResult = {
  path: string
  success: boolean
  error?: string | undefined
  code?: string | undefined
  /** Given if a write succeeded. */
  file?: FileEntry | undefined
}
export type SignFile = {
  /** Absolute, or relative to the working directory of the sandbox. */
  path: string
  /** GET: download. PUT: upload. */
  method: "GET" | "PUT"
  /** Milliseconds or like 30m. Default: one hour. */
  expiresIn?: number | string | undefined
}
export type SignedUrl = {
  url: string
  method: "GET" | "PUT"
  expiresAt: string
}
export type RuntimeInfo = {
  name: string
  description: string
  /** Whether its image is on this machine. If not, the first sandbox that uses it makes it. */
  ready: boolean
  image: string | null
  source: {
    kind: "host"
  } | {
    kind: "debian"
    suite: string
  } | {
    kind: "oci"
    reference: string
  } | {
    kind: "directory"
    path: string
  } | {
    kind: "tar"
    path: string
  } | {
    kind: "packages"
    base: string
    dependencies: string[]
    packages: string[]
    pip: string[]
  }
  /** Size of its image; null for the runtime host. */
  sizeBytes: number | null
  /** When its image was made; null for the runtime host. */
  createdAt: string | null
  /** Versions of its programs, such as node and python, if known. */
  versions: Record<string, string>
}
export type ImageInfo = {
  name: string
  digest: string
  source: {
    kind: "host"
  } | {
    kind: "debian"
    suite: string
  } | {
    kind: "oci"
    reference: string
  } | {
    kind: "directory"
    path: string
  } | {
    kind: "tar"
    path: string
  } | {
    kind: "packages"
    base: string
    dependencies: string[]
    packages: string[]
    pip: string[]
  }
  sizeBytes: number
  createdAt: string
  runtimes: string[]
}
export type ImageProgress = {
  type: "progress"
  stage: string
  message: string
  fraction?: number | undefined
} | {
  type: "done"
  image: ImageInfo
} | {
  type: "error"
  error: {
    code: string
    message: string
    hint?: string | undefined
    retryable: boolean
    details?: Record<string, unknown> | undefined
  }
}
export type CreateOverlay = {
  /** The template: the absolute path of a directory in the sandbox. */
  source: string
  /** Where to copy it; relative to the working directory. */
  target: string
  /** Globs, like ['.git', '*.log']. */
  ignore?: string[] | undefined
  /** smart: directories that are rarely edited, like node_modules, become links. Default: smart. */
  strategy?: "copy" | "smart" | undefined
}
export type OverlayInfo = {
  id: string
  sandboxId: string
  source: string
  target: string
  strategy: "copy" | "smart"
  ignore: string[]
  createdAt: string
  copyStatus: "pending" | "in_progress" | "complete" | "failed"
  copyError?: string | undefined
  stats: {
    copiedFiles: number
    copiedDirs: number
    linkedDirs: number
    /** At most 1,000 paths below the source. */
    skipped: string[]
  }
}
export type CreatePatch = {
  /** Run by bash as root, in the working directory of the sandbox. */
  script: string
  description?: string | undefined
}
export type PatchInfo = {
  id: string
  checkpointId: string
  /** Patches are applied in this order. */
  sequence: number
  script: string
  description: string | null
  createdAt: string
}
export type PatchRun = {
  patchId: string
  /** pending: not run yet, because an earlier patch failed or the sandbox was not woken since. */
  status: "pending" | "running" | "applied" | "failed"
  exitCode: number | null
  /** The end of its output. */
  output: string
  /** Why the patch could not be run. */
  reason: string | null
  at: string | null
}
export type ListeningPort = {
  port: number
  /** 127.0.0.1, 0.0.0.0, ::1, :: ... */
  address: string
  uid: number
  /** The process that listens, by its pid inside the sandbox; absent if unknown. */
  pid?: number | undefined
}
export type CreatePreview = {
  port: number
  /** A name that points at this server and that no other preview has. Needs the API key. */
  domain?: string | undefined
  /** Visitors need a token: as bearer, as ?islet_token= (which becomes a cookie), or as that cookie. */
  authConfig?: {
    type: "token"
    /** Default: a random token, given in this answer only. */
    token?: string | undefined
  } | undefined
  /** Return an existing preview unchanged. Default: false, change it as requested. */
  keep?: boolean | undefined
}
export type Preview = {
  sandboxId: string
  port: number
  url: string
  domain?: string | undefined
  authConfig?: {
    type: "token"
  } | undefined
  /** Only in the answer to the request that set it. */
  token?: string | undefined
  createdAt: string
}
export type Exec = {
  /** Text runs through sh -c; a list is a program and its arguments. */
  command: string | string[]
  cwd?: string | undefined
  /** Added to the environment of the sandbox. */
  env?: Record<string, string> | undefined
  user?: string | undefined
  /** Kills the whole command after this time; 0 or absent: never. */
  timeout?: number | string | undefined
  keepOutput?: number | string | undefined
  /** Written before the command starts, by default with its user as their owner; paths may be relative to its directory. If one cannot be written, the command is not started; those before it stay. */
  files?: ({
    /** Absolute, or relative to the working directory of the sandbox. */
    path: string
    content: string
    encoding?: "utf8" | "base64" | undefined
    mode?: number | string | undefined
    owner?: string | undefined
  })[] | undefined
  /** Text, at most 8 MiB, counted after decoding; or, with `stream`, true: it stays open for POST .../stdin. */
  stdin?: string | true | undefined
  stdinEncoding?: "utf8" | "base64" | undefined
  /** Answer with lines of JSON while the command runs, without a limit. Each says its encoding: base64 if that is asked for or it is not UTF-8. */
  stream?: boolean | undefined
  /** The encoding of stdout and stderr in the answer. Default: utf8. */
  encoding?: "utf8" | "base64" | undefined
  /** Limit of stdout and stderr together; the rest is cut and truncated is true. Default: 4 MiB. */
  maxOutputBytes?: number | undefined
}
export type Outcome = "completed" | "failed" | "timeout" | "cancelled"
export type ExecResult = {
  processId: string
  /** completed: exit code 0. timeout: it ran into its timeout. cancelled: killed on request. failed: any other end. */
  outcome: Outcome
  /** 128 + n when signal n ended it, 124 when it timed out. */
  exitCode: number
  /** The signal that ended it, like SIGKILL. */
  signal: string | null
  timedOut: boolean
  /** The memory limit of the sandbox killed a process while this command ran. */
  oom: boolean
  durationMs: number
  /** Why it may have failed, if the output shows it: the sandbox has no network. */
  hint?: string | undefined
  /** The sandbox was suspended and was woken for this call. */
  autoResumed: boolean
  stdout: string
  stderr: string
  truncated: boolean
  /** Bytes that were printed but are not in this answer; the end of the output is kept with the process. */
  droppedBytes: number
}
export type CommandResult = Omit<ExecResult, 'autoResumed'>
export type Run = {
  /** A name of GET /v1/runtimes, made on first use. Default: base. */
  runtime?: string | undefined
  /** The id or tag of a snapshot to start from, instead of a runtime. What is not given here is taken from it. */
  snapshot?: string | undefined
  /** Debian packages, as name or name=version. Installed once for each set, then kept. */
  dependencies?: string[] | undefined
  /** npm packages to install globally, as name, name@version or name@^version. */
  packages?: string[] | undefined
  /** Python packages, as names with extras and versions; no URLs and no options. */
  pip?: string[] | undefined
  /** Unique among sandboxes that are not stopped. Must not begin with sbx-. */
  name?: string | undefined
  description?: string | undefined
  metadata?: Record<string, Json> | undefined
  project?: string | undefined
  /** Added to the environment of the sandbox. */
  env?: Record<string, string> | undefined
  /** Written before the sandbox is given; paths may be relative to the working directory. */
  files?: ({
    /** Absolute, or relative to the working directory of the sandbox. */
    path: string
    content: string
    encoding?: "utf8" | "base64" | undefined
    mode?: number | string | undefined
    owner?: string | undefined
  })[] | undefined
  resources?: {
    /** Bytes, or like '512Mi'. */
    memory?: number | string | undefined
    /** Cores, or like '500m'. */
    cpu?: number | string | undefined
    /** Bytes, or like '2Gi'. Enforced if the storage can; see capabilities. */
    disk?: number | string | undefined
    /** The maximum number of processes and threads. */
    pids?: number | undefined
  } | undefined
  network?: {
    /** Default: false, loopback only. */
    enabled?: boolean | undefined
    /** A port that gets a preview together with the sandbox; `url` in the answer is its URL. Default: null, none. */
    port?: number | null | undefined
  } | undefined
  user?: string | undefined
  /** The directory in which commands start; created if missing. Default: that of the image. */
  workdir?: string | undefined
  /** Kills the whole command after this time; 0 or absent: never. */
  timeout?: number | string | undefined
  /** Set ISLET_STORE_URL and ISLET_STORE_TOKEN for programs inside, which give access to the store. Default: false. */
  storeAccess?: boolean | undefined
  /** Text runs through sh -c; a list is a program and its arguments. */
  command: string | string[]
  cwd?: string | undefined
  keepOutput?: number | string | undefined
  /** Text, at most 8 MiB, counted after decoding; or, with `stream`, true: it stays open for POST .../stdin. */
  stdin?: string | true | undefined
  stdinEncoding?: "utf8" | "base64" | undefined
  /** Answer with lines of JSON while the command runs, without a limit. Each says its encoding: base64 if that is asked for or it is not UTF-8. */
  stream?: boolean | undefined
  /** The encoding of stdout and stderr in the answer. Default: utf8. */
  encoding?: "utf8" | "base64" | undefined
  /** Limit of stdout and stderr together; the rest is cut and truncated is true. Default: 4 MiB. */
  maxOutputBytes?: number | undefined
}
export type RunResult = {
  processId: string
  /** completed: exit code 0. timeout: it ran into its timeout. cancelled: killed on request. failed: any other end. */
  outcome: Outcome
  /** 128 + n when signal n ended it, 124 when it timed out. */
  exitCode: number
  /** The signal that ended it, like SIGKILL. */
  signal: string | null
  timedOut: boolean
  /** The memory limit of the sandbox killed a process while this command ran. */
  oom: boolean
  durationMs: number
  /** Why it may have failed, if the output shows it: the sandbox has no network. */
  hint?: string | undefined
  /** The sandbox was suspended and was woken for this call. */
  autoResumed: boolean
  stdout: string
  stderr: string
  truncated: boolean
  /** Bytes that were printed but are not in this answer; the end of the output is kept with the process. */
  droppedBytes: number
  sandboxId: string
}
export type RunProgress = {
  type: "progress"
  stage: string
  message: string
  fraction?: number | undefined
} | {
  type: "done"
  result: RunResult
} | {
  type: "error"
  error: {
    code: string
    message: string
    hint?: string | undefined
    retryable: boolean
    details?: Record<string, unknown> | undefined
  }
}
export type ExecLine = {
  type: "start"
  sandboxId: string
  processId: string
  /** The sandbox was suspended and was woken for this call. */
  autoResumed: boolean
} | {
  type: "stdout"
  data: string
  /** Absent: data is text. */
  encoding?: "base64" | undefined
} | {
  type: "stderr"
  data: string
  /** Absent: data is text. */
  encoding?: "base64" | undefined
} | {
  type: "exit"
  processId: string
  /** completed: exit code 0. timeout: it ran into its timeout. cancelled: killed on request. failed: any other end. */
  outcome: Outcome
  /** 128 + n when signal n ended it, 124 when it timed out. */
  exitCode: number
  /** The signal that ended it, like SIGKILL. */
  signal: string | null
  timedOut: boolean
  /** The memory limit of the sandbox killed a process while this command ran. */
  oom: boolean
  durationMs: number
  /** Why it may have failed, if the output shows it: the sandbox has no network. */
  hint?: string | undefined
  /** The sandbox was suspended and was woken for this call. */
  autoResumed: boolean
  truncated: boolean
  /** Bytes that were printed but are not in this answer; the end of the output is kept with the process. */
  droppedBytes: number
} | {
  type: "error"
  error: {
    code: string
    message: string
  }
}
export type StartProcess = {
  /** Text runs through sh -c; a list is a program and its arguments. */
  command: string | string[]
  cwd?: string | undefined
  /** Added to the environment of the sandbox. */
  env?: Record<string, string> | undefined
  user?: string | undefined
  /** Kills the whole command after this time; 0 or absent: never. */
  timeout?: number | string | undefined
  keepOutput?: number | string | undefined
  /** Written before the command starts, by default with its user as their owner; paths may be relative to its directory. If one cannot be written, the command is not started; those before it stay. */
  files?: ({
    /** Absolute, or relative to the working directory of the sandbox. */
    path: string
    content: string
    encoding?: "utf8" | "base64" | undefined
    mode?: number | string | undefined
    owner?: string | undefined
  })[] | undefined
  /** Keep stdin open for writes. Default: false; the stdin of a terminal is always open. */
  stdin?: boolean | undefined
  /** Hold the output back until the first client attaches, for up to 10 s, so that the client misses nothing. */
  hold?: boolean | undefined
  /** Run in a terminal of this size. */
  terminal?: {
    cols: number
    rows: number
  } | undefined
  /** The sandbox is not idle while the process runs. Default: true; false in a terminal. */
  keepAwake?: boolean | undefined
  /** Kill the process this long after the last attached client has left, unless one returns; 0: at once. Absent: it keeps running. A process that never had a client is not killed. A restart of the server starts the time again. */
  maxRunAfterDisconnect?: number | string | undefined
}
export type ProcessKind = "command" | "job" | "terminal" | "service"
export type ProcessInfo = {
  /** command: a client waits for its end. job: in the background. terminal: in a pty. service: of a service. */
  kind: ProcessKind
  id: string
  sandboxId: string
  command: string | string[]
  /** lost: the sandbox ended before the process did. */
  status: "running" | "exited" | "lost"
  /** completed: exit code 0. timeout: it ran into its timeout. cancelled: killed on request. failed: any other end, also lost. null: it has not ended. */
  outcome: Outcome | null
  /** Why it was lost. */
  reason: string | null
  /** As outcome, but failed after a timeout. pending: not started yet. running: it has not ended. */
  jobStatus: "pending" | "running" | "completed" | "failed" | "cancelled"
  pid: number | null
  cwd: string
  user: string
  terminal: boolean
  /** The terminal it belongs to. */
  terminalId: string | null
  /** The service it belongs to. */
  service: string | null
  /** The sandbox is not idle while the process runs. */
  keepAwake: boolean
  maxRunAfterDisconnectMs: number | null
  startedAt: string
  endedAt: string | null
  /** Bytes printed so far; the end of them is kept. */
  outputBytes: number
  /** How many bytes of the output are kept at most. */
  keepOutputBytes: number
  result: {
    /** 128 + n when signal n ended it, 124 when it timed out. */
    exitCode: number
    /** The signal that ended it, like SIGKILL. */
    signal: string | null
    timedOut: boolean
    /** The memory limit of the sandbox killed a process while this command ran. */
    oom: boolean
    durationMs: number
    /** Why it may have failed, if the output shows it: the sandbox has no network. */
    hint?: string | undefined
  } | null
}
export type StartedProcess = {
  /** command: a client waits for its end. job: in the background. terminal: in a pty. service: of a service. */
  kind: ProcessKind
  id: string
  sandboxId: string
  command: string | string[]
  /** lost: the sandbox ended before the process did. */
  status: "running" | "exited" | "lost"
  /** completed: exit code 0. timeout: it ran into its timeout. cancelled: killed on request. failed: any other end, also lost. null: it has not ended. */
  outcome: Outcome | null
  /** Why it was lost. */
  reason: string | null
  /** As outcome, but failed after a timeout. pending: not started yet. running: it has not ended. */
  jobStatus: "pending" | "running" | "completed" | "failed" | "cancelled"
  pid: number | null
  cwd: string
  user: string
  terminal: boolean
  /** The terminal it belongs to. */
  terminalId: string | null
  /** The service it belongs to. */
  service: string | null
  /** The sandbox is not idle while the process runs. */
  keepAwake: boolean
  maxRunAfterDisconnectMs: number | null
  startedAt: string
  endedAt: string | null
  /** Bytes printed so far; the end of them is kept. */
  outputBytes: number
  /** How many bytes of the output are kept at most. */
  keepOutputBytes: number
  result: {
    /** 128 + n when signal n ended it, 124 when it timed out. */
    exitCode: number
    /** The signal that ended it, like SIGKILL. */
    signal: string | null
    timedOut: boolean
    /** The memory limit of the sandbox killed a process while this command ran. */
    oom: boolean
    durationMs: number
    /** Why it may have failed, if the output shows it: the sandbox has no network. */
    hint?: string | undefined
  } | null
  /** The sandbox was suspended and was woken for this call. */
  autoResumed: boolean
}
export type ProcessOutput = {
  stdout: string
  stderr: string
  /** True if the beginning of the output is missing. */
  truncated: boolean
  /** Bytes that were printed before the given output. */
  droppedBytes: number
  outputBytes: number
}
export type OutputChannel = "stdout" | "stderr" | "combined"
export type SignOutput = {
  /** combined: both, in the order they came. Default: combined. */
  channel?: "stdout" | "stderr" | "combined" | undefined
  /** Milliseconds or like 30m. Default: 24 hours. */
  expiresIn?: number | string | undefined
}
export type OutputUrl = {
  url: string
  channel: OutputChannel
  expiresAt: string
}
export type AttachServerMessage = {
  type: "start"
  process: ProcessInfo
  truncated: boolean
  /** Bytes that were printed before the output that follows. `start` is sent again if kept output was removed during the replay. */
  droppedBytes: number
} | {
  type: "replay-end"
} | {
  type: "exit"
  /** completed: exit code 0. timeout: it ran into its timeout. cancelled: killed on request. failed: any other end. */
  outcome: Outcome
  /** 128 + n when signal n ended it, 124 when it timed out. */
  exitCode: number
  /** The signal that ended it, like SIGKILL. */
  signal: string | null
  timedOut: boolean
  /** The memory limit of the sandbox killed a process while this command ran. */
  oom: boolean
  durationMs: number
  /** Why it may have failed, if the output shows it: the sandbox has no network. */
  hint?: string | undefined
} | {
  type: "error"
  error: {
    code: string
    message: string
  }
}
export type SandboxStatus = "creating" | "running" | "paused" | "hibernated" | "stopped" | "failed"
export type CreateSandbox = {
  /** A name of GET /v1/runtimes, made on first use. Default: base. */
  runtime?: string | undefined
  /** The id or tag of a snapshot to start from, instead of a runtime. What is not given here is taken from it. */
  snapshot?: string | undefined
  /** Debian packages, as name or name=version. Installed once for each set, then kept. */
  dependencies?: string[] | undefined
  /** npm packages to install globally, as name, name@version or name@^version. */
  packages?: string[] | undefined
  /** Python packages, as names with extras and versions; no URLs and no options. */
  pip?: string[] | undefined
  /** Unique among sandboxes that are not stopped. Must not begin with sbx-. */
  name?: string | undefined
  description?: string | undefined
  metadata?: Record<string, Json> | undefined
  project?: string | undefined
  env?: Record<string, string> | undefined
  /** Written before the sandbox is given; paths may be relative to the working directory. */
  files?: ({
    /** Absolute, or relative to the working directory of the sandbox. */
    path: string
    content: string
    encoding?: "utf8" | "base64" | undefined
    mode?: number | string | undefined
    owner?: string | undefined
  })[] | undefined
  resources?: {
    /** Bytes, or like '512Mi'. */
    memory?: number | string | undefined
    /** Cores, or like '500m'. */
    cpu?: number | string | undefined
    /** Bytes, or like '2Gi'. Enforced if the storage can; see capabilities. */
    disk?: number | string | undefined
    /** The maximum number of processes and threads. */
    pids?: number | undefined
  } | undefined
  network?: {
    /** Default: false, loopback only. */
    enabled?: boolean | undefined
    /** A port that gets a preview together with the sandbox; `url` in the answer is its URL. Default: null, none. */
    port?: number | null | undefined
  } | undefined
  /** The user that runs commands. Default: the user of the image, usually user. */
  user?: string | undefined
  /** The directory in which commands start; created if missing. Default: that of the image. */
  workdir?: string | undefined
  /** When the sandbox hibernates or stops by itself. */
  timeout?: Timeouts | undefined
  /** true: the sandbox is never idle. Default: false. */
  keepAwake?: boolean | undefined
  /** Set ISLET_STORE_URL and ISLET_STORE_TOKEN for programs inside, which give access to the store. Default: false. */
  storeAccess?: boolean | undefined
}
export type UpdateSandbox = {
  /** With the API key only. */
  name?: string | null | undefined
  description?: string | null | undefined
  /** Replaces the metadata. */
  metadata?: Record<string, Json> | undefined
  /** With the API key only. */
  project?: string | null | undefined
  /** Merged into the environment of later commands; null removes a variable. */
  env?: Record<string, string | null> | undefined
  /** With the API key only. */
  resources?: {
    /** Bytes, or like '512Mi'. */
    memory?: number | string | undefined
    /** Cores, or like '500m'. */
    cpu?: number | string | undefined
    /** Bytes, or like '2Gi'. Enforced if the storage can; see capabilities. */
    disk?: number | string | undefined
    /** The maximum number of processes and threads. */
    pids?: number | undefined
  } | undefined
  /** true: the sandbox is never idle. false: its idle time begins now. */
  keepAwake?: boolean | undefined
  network?: {
    /** Turns the network on or off; off ends open connections. Turning it on needs the API key. */
    enabled?: boolean | undefined
    /** Gives this port a preview, and removes that of the previous port; null: only removes. */
    port?: number | null | undefined
  } | undefined
}
export type CopySandbox = {
  /** Unique among sandboxes that are not stopped. Must not begin with sbx-. */
  name?: string | undefined
  description?: string | undefined
  metadata?: Record<string, Json> | undefined
  project?: string | undefined
  env?: Record<string, string> | undefined
  /** Written before the sandbox is given; paths may be relative to the working directory. */
  files?: ({
    /** Absolute, or relative to the working directory of the sandbox. */
    path: string
    content: string
    encoding?: "utf8" | "base64" | undefined
    mode?: number | string | undefined
    owner?: string | undefined
  })[] | undefined
  resources?: {
    /** Bytes, or like '512Mi'. */
    memory?: number | string | undefined
    /** Cores, or like '500m'. */
    cpu?: number | string | undefined
    /** Bytes, or like '2Gi'. Enforced if the storage can; see capabilities. */
    disk?: number | string | undefined
    /** The maximum number of processes and threads. */
    pids?: number | undefined
  } | undefined
  network?: {
    /** Default: false, loopback only. */
    enabled?: boolean | undefined
    /** A port that gets a preview together with the sandbox; `url` in the answer is its URL. Default: null, none. */
    port?: number | null | undefined
  } | undefined
  /** The user that runs commands. Default: the user of the image, usually user. */
  user?: string | undefined
  /** The directory in which commands start; created if missing. Default: that of the image. */
  workdir?: string | undefined
  /** When the sandbox hibernates or stops by itself. */
  timeout?: Timeouts | undefined
  /** true: the sandbox is never idle. Default: false. */
  keepAwake?: boolean | undefined
  /** Set ISLET_STORE_URL and ISLET_STORE_TOKEN for programs inside, which give access to the store. Default: false. */
  storeAccess?: boolean | undefined
}
export type Sandbox = {
  id: string
  name: string | null
  description: string | null
  status: SandboxStatus
  reason: string | null
  runtime: string
  image: string | null
  engine: string
  isolation: string
  metadata: Record<string, Json>
  project: string | null
  env: Record<string, string>
  resources: {
    memoryBytes: number
    cpuMillis: number
    diskBytes: number
    pids: number
  }
  network: {
    enabled: boolean
    /** The port that `url` leads to. */
    port: number | null
  }
  /** The preview of `network.port`. */
  url: string | null
  user: string
  workdir: string
  storeAccess: boolean
  keepAwake: boolean
  timeouts: TimeoutsInfo
  /** What it was made from: a checkpoint, a snapshot, or (fork) another sandbox. */
  origin: {
    kind: "checkpoint" | "snapshot" | "fork"
    id: string
  } | null
  /** When a paused sandbox will be stopped, if it has a paused timeout. */
  terminatesAt: string | null
  createdAt: string
  updatedAt: string
  stoppedAt: string | null
}
export type AwakeReason = {
  /** setting: keepAwake, or no idle timeout. command: a client waits for its end. job: a background process, or an overlay that is being copied. service, terminal: with keepAwake. session: a WebSocket client. preview: an open connection. call: another request. */
  kind: "setting" | "command" | "job" | "service" | "terminal" | "session" | "preview" | "call"
  /** The id of the process, terminal or watcher, the name of the service, or the port of the preview. */
  id?: string | undefined
}
export type Awake = {
  /** Why the sandbox is not idle now; only the first reasons if there are many. */
  reasons: AwakeReason[]
  /** When the sandbox does `onIdle` if it is not used before; null while there are reasons. */
  sleepsAt: string | null
}
export type SandboxDetail = {
  id: string
  name: string | null
  description: string | null
  status: SandboxStatus
  reason: string | null
  runtime: string
  image: string | null
  engine: string
  isolation: string
  metadata: Record<string, Json>
  project: string | null
  env: Record<string, string>
  resources: {
    memoryBytes: number
    cpuMillis: number
    diskBytes: number
    pids: number
  }
  network: {
    enabled: boolean
    /** The port that `url` leads to. */
    port: number | null
  }
  /** The preview of `network.port`. */
  url: string | null
  user: string
  workdir: string
  storeAccess: boolean
  keepAwake: boolean
  timeouts: TimeoutsInfo
  /** What it was made from: a checkpoint, a snapshot, or (fork) another sandbox. */
  origin: {
    kind: "checkpoint" | "snapshot" | "fork"
    id: string
  } | null
  /** When a paused sandbox will be stopped, if it has a paused timeout. */
  terminatesAt: string | null
  createdAt: string
  updatedAt: string
  stoppedAt: string | null
  /** Null unless the sandbox runs. */
  awake: Awake | null
}
export type CreatedSandbox = {
  id: string
  name: string | null
  description: string | null
  status: SandboxStatus
  reason: string | null
  runtime: string
  image: string | null
  engine: string
  isolation: string
  metadata: Record<string, Json>
  project: string | null
  env: Record<string, string>
  resources: {
    memoryBytes: number
    cpuMillis: number
    diskBytes: number
    pids: number
  }
  network: {
    enabled: boolean
    /** The port that `url` leads to. */
    port: number | null
  }
  /** The preview of `network.port`. */
  url: string | null
  user: string
  workdir: string
  storeAccess: boolean
  keepAwake: boolean
  timeouts: TimeoutsInfo
  /** What it was made from: a checkpoint, a snapshot, or (fork) another sandbox. */
  origin: {
    kind: "checkpoint" | "snapshot" | "fork"
    id: string
  } | null
  /** When a paused sandbox will be stopped, if it has a paused timeout. */
  terminatesAt: string | null
  createdAt: string
  updatedAt: string
  stoppedAt: string | null
  token: string
  tokenExpiresAt: string
  /** The results of the patches, if it was made from a checkpoint that has some. */
  patches?: PatchRun[] | undefined
}
export type CreateProgress = {
  type: "progress"
  stage: string
  message: string
  fraction?: number | undefined
} | {
  type: "done"
  sandbox: CreatedSandbox
} | {
  type: "error"
  error: {
    code: string
    message: string
    hint?: string | undefined
    retryable: boolean
    details?: Record<string, unknown> | undefined
  }
}
export type ListSandboxes = {
  /** Default: all except stopped. */
  status?: "creating" | "running" | "paused" | "hibernated" | "stopped" | "failed" | "all" | undefined
  name?: string | undefined
  project?: string | undefined
  /** key=value; may be repeated, all must match. */
  metadata?: string | string[] | undefined
  /** Default: 100. */
  limit?: number | undefined
  /** Of the last answer, for the next page. */
  cursor?: string | undefined
  /** Leave out this many from the beginning. */
  offset?: number | undefined
  /** Default: created. */
  sort?: "created" | "updated" | "name" | "status" | undefined
  /** Default: desc for times, asc for name and status. */
  direction?: "asc" | "desc" | undefined
}
export type SandboxPage = {
  sandboxes: SandboxDetail[]
  /** How many there are, without limit and offset. */
  total: number
  cursor?: string | undefined
}
export type SandboxUsage = {
  memoryBytes: number
  memoryPeakBytes: number
  cpuUsec: number
  pids: number
  oomKills: number
  diskBytes: number
}
export type WokenSandbox = {
  id: string
  name: string | null
  description: string | null
  status: SandboxStatus
  reason: string | null
  runtime: string
  image: string | null
  engine: string
  isolation: string
  metadata: Record<string, Json>
  project: string | null
  env: Record<string, string>
  resources: {
    memoryBytes: number
    cpuMillis: number
    diskBytes: number
    pids: number
  }
  network: {
    enabled: boolean
    /** The port that `url` leads to. */
    port: number | null
  }
  /** The preview of `network.port`. */
  url: string | null
  user: string
  workdir: string
  storeAccess: boolean
  keepAwake: boolean
  timeouts: TimeoutsInfo
  /** What it was made from: a checkpoint, a snapshot, or (fork) another sandbox. */
  origin: {
    kind: "checkpoint" | "snapshot" | "fork"
    id: string
  } | null
  /** When a paused sandbox will be stopped, if it has a paused timeout. */
  terminatesAt: string | null
  createdAt: string
  updatedAt: string
  stoppedAt: string | null
  patches?: PatchRun[] | undefined
}
export type ForkSandbox = {
  /** Unique among sandboxes that are not stopped. Must not begin with sbx-. */
  name?: string | undefined
  description?: string | undefined
  metadata?: Record<string, Json> | undefined
  project?: string | undefined
  env?: Record<string, string> | undefined
  /** Written before the sandbox is given; paths may be relative to the working directory. */
  files?: ({
    /** Absolute, or relative to the working directory of the sandbox. */
    path: string
    content: string
    encoding?: "utf8" | "base64" | undefined
    mode?: number | string | undefined
    owner?: string | undefined
  })[] | undefined
  resources?: {
    /** Bytes, or like '512Mi'. */
    memory?: number | string | undefined
    /** Cores, or like '500m'. */
    cpu?: number | string | undefined
    /** Bytes, or like '2Gi'. Enforced if the storage can; see capabilities. */
    disk?: number | string | undefined
    /** The maximum number of processes and threads. */
    pids?: number | undefined
  } | undefined
  network?: {
    /** Default: false, loopback only. */
    enabled?: boolean | undefined
    /** A port that gets a preview together with the sandbox; `url` in the answer is its URL. Default: null, none. */
    port?: number | null | undefined
  } | undefined
  /** The user that runs commands. Default: the user of the image, usually user. */
  user?: string | undefined
  /** The directory in which commands start; created if missing. Default: that of the image. */
  workdir?: string | undefined
  /** When the sandbox hibernates or stops by itself. */
  timeout?: Timeouts | undefined
  /** true: the sandbox is never idle. Default: false. */
  keepAwake?: boolean | undefined
  /** Set ISLET_STORE_URL and ISLET_STORE_TOKEN for programs inside, which give access to the store. Default: false. */
  storeAccess?: boolean | undefined
  /** How many forks. Default: 1. */
  count?: number | undefined
}
export type Forks = {
  forks: ({
    ok: true
    sandbox: CreatedSandbox
  } | {
    ok: false
    error: {
      code: string
      message: string
      hint?: string | undefined
    }
  })[]
  /** How long the source was frozen. */
  frozenMs: number
  /** Whether the processes of the source continue in the forks. */
  memory: boolean
}
export type ServerInfo = {
  version: string
  engine: string
  isolation: string
  capabilities: Record<string, true | {
    missing: string
  }>
  /** The resources of the machine: the maximum for one sandbox. */
  machine: {
    memoryBytes: number
    cpuMillis: number
    diskBytes: number
    pids: number
  }
  storage: {
    clone: string
    diskLimit: boolean
    stacks: boolean
  }
  /** Free disk space. */
  disk: {
    /** Free on the disk of the data directory. */
    freeBytes: number
    /** Free for the files of all sandboxes together. */
    roomBytes: number
    /** Why the disk is low; null if it is not. While it is low, nothing new is created and sandboxes that fill it are paused. */
    low: string | null
  }
  /** Sandboxes that are neither stopped nor failed. */
  sandboxes: number
  /** Cells started ahead of demand; all 0 if `capabilities.lateRoot` is missing. */
  warm: {
    /** How many wait now. */
    ready: number
    /** How many should wait, from recent demand and free memory. */
    target: number
    min: number
    max: number
  }
  startedAt: string
}
export type Prune = {
  /** Only say what would be removed. Default: false. */
  dryRun?: boolean | undefined
  /** Also remove checkpoints of stopped sandboxes, unless an existing sandbox was made from them. Default: false. */
  checkpoints?: boolean | undefined
  /** Only records of sandboxes that were stopped, checkpoints that were made, and images of packages that were used last, at least this long ago. Default: 0. */
  olderThan?: number | string | undefined
}
export type Pruned = {
  dryRun: boolean
  /** Images without a runtime name that are not in use. */
  images: ({
    name: string
    sizeBytes: number
  })[]
  checkpoints: ({
    id: string
    sandboxId: string
    name: string
    sizeBytes: number | null
  })[]
  /** Stopped sandboxes whose records, events and kept output are removed. */
  sandboxes: string[]
  /** Approximate size of removed images, interrupted imports, checkpoints and kept output. Files that are still in use stay. */
  freedBytes: number
}
export type StartService = {
  name: string
  /** The command, run with sh -c. */
  start: string
  /** A command that must succeed before the first start. */
  install?: string | undefined
  /** The directory of both commands. Default: the working directory. */
  path?: string | undefined
  /** A .env file, relative to path; read at every start. */
  envFile?: string | undefined
  /** Overrides the variables of the env file. */
  environment?: Record<string, string> | undefined
  user?: string | undefined
  /** Passed to the command as PORT. If it is taken, the next free port is used, unless strictPort. */
  port?: number | undefined
  /** Fail when the port is taken. Default: false. */
  strictPort?: boolean | undefined
  /** Start again when the sandbox starts again. Default: true. */
  autostart?: boolean | undefined
  /** Default: never. */
  restartPolicy?: "never" | "on-failure" | "always" | undefined
  /** 0: unlimited. Default: 0. */
  maxRestarts?: number | undefined
  /** Delay before a restart. Default: 1s, at least 20 ms. */
  restartDelay?: number | string | undefined
  /** Time between SIGTERM and SIGKILL. Default: 10s. */
  stopTimeout?: number | string | undefined
  healthCheck?: {
    /** Requested with GET; a status below 400 is healthy. */
    path: string
    /** Default: 5s. */
    interval?: number | string | undefined
    /** Timeout of one request. Default: 3s. */
    timeout?: number | string | undefined
    /** Delay before the first request. Default: none. */
    delay?: number | string | undefined
  } | undefined
  keepOutput?: number | string | undefined
  /** The sandbox is not idle while the service is to run. Default: false. */
  keepAwake?: boolean | undefined
}
export type ServiceInfo = {
  name: string
  sandboxId: string
  start: string
  install?: string | undefined
  /** Absolute. */
  path: string
  /** The path as it was given. */
  originalPath?: string | undefined
  envFile?: string | undefined
  environment: Record<string, string>
  /** The port on which it listens or will listen. */
  port?: number | undefined
  /** Its preview URL, once it is ready. */
  url?: string | undefined
  /** running: the command runs. ready: its port listens and its health check passes. */
  status: "installing" | "starting" | "running" | "ready" | "failed" | "stopped"
  /** Why it failed. */
  reason?: string | undefined
  pid?: number | undefined
  /** The running command, or the last one. */
  processId?: string | undefined
  autostart: boolean
  /** The service keeps the sandbox awake. */
  keepAwake: boolean
  restartPolicy: "never" | "on-failure" | "always"
  maxRestarts: number
  restartCount: number
  healthy?: boolean | undefined
  /** The result of the last health check. */
  healthStatus?: string | undefined
  createdAt: string
  updatedAt: string
}
export type ServiceLogs = {
  processId: string | null
  stdout: string
  stderr: string
  truncated: boolean
  /** Bytes that were printed before the given output. */
  droppedBytes: number
}
export type SignalEvent = {
  signal: "port"
  port: number
  type: "open" | "close"
  url: string
} | {
  signal: "server-ready"
  port: number
  url: string
} | {
  signal: "error"
  message: string
} | {
  signal: string
  data?: Json | undefined
}
export type SignalStatus = {
  status: "active" | "stopped"
  /** The path of the WebSocket. */
  channel: string
  wsUrl: string
}
export type SignalMessage = {
  type: "start"
} | {
  type: "signal"
  event: SignalEvent
} | {
  type: "overflow"
} | {
  type: "exit"
} | {
  type: "error"
  error: {
    code: string
    message: string
  }
}
export type CreateSnapshot = {
  /** Make the snapshot from this sandbox as it is now. */
  sandbox?: string | undefined
  /** Make the snapshot from this checkpoint. */
  checkpoint?: string | undefined
  name?: string | undefined
  /** If another snapshot has this tag, the tag moves here. */
  tag?: string | undefined
  description?: string | undefined
}
export type UpdateSnapshot = {
  /** null removes the tag. */
  tag?: string | null | undefined
  name?: string | null | undefined
  description?: string | null | undefined
}
export type SnapshotInfo = {
  id: string
  name: string | null
  tag: string | null
  description: string | null
  /** The sandbox it was made from; null if it was imported. */
  sandboxId: string | null
  checkpointId: string | null
  /** The snapshot that its sandbox was made from, if any. */
  parentId: string | null
  runtime: string
  memory: boolean
  sizeBytes: number | null
  createdAt: string
}
export type ListSnapshots = {
  name?: string | undefined
  tag?: string | undefined
  sandbox?: string | undefined
  /** Default: 100. */
  limit?: number | undefined
  /** Of the last answer, for the next page. */
  cursor?: string | undefined
  /** Leave out this many from the beginning. */
  offset?: number | undefined
  /** Default: created. */
  sort?: "created" | "name" | undefined
  /** Default: desc for created, asc for name. */
  direction?: "asc" | "desc" | undefined
}
export type SnapshotPage = {
  snapshots: SnapshotInfo[]
  /** How many there are, without limit and offset. */
  total: number
  cursor?: string | undefined
}
export type SnapshotLineage = {
  /** The snapshot, its parent, the parent of that, ... */
  lineage: ({
    id: string
    name: string | null
    tag: string | null
    createdAt: string
    /** Deleted, but other snapshots are built on it. */
    deleted: boolean
  })[]
  /** All descendants, parents before children. */
  children: ({
    id: string
    name: string | null
    tag: string | null
    createdAt: string
    /** Deleted, but other snapshots are built on it. */
    deleted: boolean
    parentId: string
  })[]
}
export type SetStore = {
  /** Any JSON, null too, of at most 1048576 bytes. */
  value: unknown
  /** Default: no expiry. */
  ttl_seconds?: number | undefined
}
export type StoreEntry = {
  /** Any JSON. */
  value: unknown
  expires_at: string | null
}
export type StoreSet = {
  ok: true
  expires_at: string | null
}
export type StoreDeleted = {
  deleted: boolean
  ok: true
}
export type StoreKeys = {
  keys: string[]
  /** True if there are more keys. */
  truncated: boolean
  /** Only if truncated. */
  cursor?: string | undefined
}
export type StoreOperation = {
  op: "set"
  key: string
  /** Any JSON, null too, of at most 1048576 bytes. */
  value: unknown
  /** Default: no expiry. */
  ttl_seconds?: number | undefined
} | {
  op: "delete"
  key: string
}
export type StoreBatchResult = {
  applied: number
  ok: true
}
export type StoreKeyOperation = {
  op: "get"
  key: string
} | {
  op: "set"
  key: string
  /** Any JSON, null too, of at most 1048576 bytes. */
  value: unknown
  /** Default: no expiry. */
  ttl_seconds?: number | undefined
} | {
  op: "delete"
  key: string
}
export type CreateTerminal = {
  /** true: an interactive shell. false: commands, each with its result. Default: false. */
  pty?: boolean | undefined
  /** The program of a pty. Default: the user's login shell. */
  shell?: string | undefined
  /** Default: 80. */
  cols?: number | undefined
  /** Default: 24. */
  rows?: number | undefined
  /** The encoding of output: raw (text) or base64. Default: raw. */
  encoding?: "raw" | "base64" | undefined
  cwd?: string | undefined
  env?: Record<string, string> | undefined
  user?: string | undefined
  /** How much of the output of a pty is kept. */
  keepOutput?: number | string | undefined
  /** The sandbox is not idle while the shell of a pty runs, also without clients. Default: false. */
  keepAwake?: boolean | undefined
}
export type TerminalInfo = {
  id: string
  sandboxId: string
  pty: boolean
  /** A pty is running until its shell ends; a terminal for commands is ready. */
  status: "running" | "ready" | "stopped"
  encoding: "raw" | "base64"
  /** The process of the shell of a pty, to attach to. */
  processId: string | null
  /** The path of the WebSocket of a pty. */
  channel: string | null
  /** Whether its shell keeps the sandbox awake, also without clients. */
  keepAwake: boolean
  createdAt: string
}
export type RunTerminalCommand = {
  command: string
  keepOutput?: number | string | undefined
  /** Answer at once. Default: false. */
  background?: boolean | undefined
  cwd?: string | undefined
  env?: Record<string, string> | undefined
  /** Kills the whole command after this long; 0: never. Default: the execution timeout of the sandbox, also in the background. */
  timeout?: number | string | undefined
}
export type TerminalCommandInfo = {
  id: string
  terminalId: string
  command: string
  /** completed: exit code 0. */
  status: "running" | "completed" | "failed"
  /** As of a process; null while it runs. */
  outcome: Outcome | null
  /** In the encoding of the terminal, like stderr. */
  stdout: string
  stderr: string
  /** True if only the end of the output is given. */
  truncated: boolean
  /** Bytes that were printed before the given output. */
  droppedBytes: number
  exitCode: number | null
  durationMs: number | null
  startedAt: string
  finishedAt: string | null
}
export type Timeouts = {
  /** How long the sandbox may be idle before `onIdle` is done. It is not idle while a command or a job in the background runs, a client is attached or a preview connection is open. Services and terminals without clients do not count, unless they have keepAwake. Default: '5m'; 0: never. */
  idle?: number | string | undefined
  /** For every command, job and piece of code without its own timeout. Default: 0, never. */
  execution?: number | string | undefined
  /** How long the sandbox may stay paused before it is stopped. Default: 0, for ever. */
  paused?: number | string | undefined
  /** Default: hibernate. */
  onIdle?: "hibernate" | "kill" | undefined
}
export type TimeoutsInfo = {
  idleMs: number
  executionMs: number
  pausedMs: number
  onIdle: "hibernate" | "kill"
}
export type CreateToken = {
  /** Milliseconds or like 30m. Default: one hour. */
  expiresIn?: number | string | undefined
}
export type SandboxToken = {
  token: string
  expiresAt: string
}
export type CreateSessionToken = {
  /** What it is for. */
  description?: string | undefined
  /** Milliseconds or like 30m. Default: 7 days. */
  expiresIn?: number | string | undefined
}
export type SessionToken = {
  id: string
  sandboxId: string
  description: string | null
  createdAt: string
  expiresAt: string
  /** In this answer only; the server keeps its hash. */
  token: string
}
export type SessionTokenInfo = {
  id: string
  sandboxId: string
  description: string | null
  createdAt: string
  expiresAt: string
  /** Up to a minute old. Null: not used yet. */
  lastUsedAt: string | null
}
export type Session = {
  sandboxId: string
  /** The name of the sandbox. */
  name: string | null
  /** Null: not a session token. */
  tokenId: string | null
  expiresAt: string
}
export type CreateMagicLink = {
  /** The path of this server that the link leads to. Default: /play/. */
  redirectUrl?: string | undefined
}
export type MagicLink = {
  /** Works once, and for five minutes. Whoever opens it gets in. */
  url: string
  expiresAt: string
  redirectUrl: string
}
export type CreateWatcher = {
  /** Absolute, or relative to the working directory of the sandbox. */
  path: string
  /** Include the content of files that were added or changed. Default: false. */
  includeContent?: boolean | undefined
  /** Globs, like ['node_modules', '*.log']. */
  ignored?: string[] | undefined
  /** The encoding of content. Default: raw, UTF-8 text. */
  encoding?: "raw" | "base64" | undefined
}
export type WatcherInfo = {
  id: string
  sandboxId: string
  path: string
  includeContent: boolean
  ignored: string[]
  encoding: "raw" | "base64"
  status: "active" | "stopped"
  /** Why it stopped. */
  reason: string | null
  /** The path of its WebSocket. */
  channel: string
  createdAt: string
}
export type FileChange = {
  event: "add" | "change" | "unlink" | "addDir" | "unlinkDir"
  path: string
  content?: string | undefined
  /** Why content is missing although includeContent is true. */
  contentOmitted?: "too_large" | "unreadable" | undefined
}
export type WatcherMessage = {
  type: "start"
  watcher: WatcherInfo
} | {
  type: "change"
  event: "add" | "change" | "unlink" | "addDir" | "unlinkDir"
  path: string
  content?: string | undefined
  /** Why content is missing although includeContent is true. */
  contentOmitted?: "too_large" | "unreadable" | undefined
} | {
  type: "overflow"
} | {
  type: "exit"
} | {
  type: "error"
  error: {
    code: string
    message: string
  }
}

export const AWAKE_KINDS = ["setting","command","job","service","terminal","session","preview","call"] as const
export const EVENT_ID = /^\d{1,15}$/
export const EVENT_TYPES = ["created","started","paused","resumed","hibernated","woken","restarted","restored","forked","failed","stopped","idle-timeout","paused-timeout","timeout.changed","network.changed","oom","disk_low","disk_ok","checkpoint.created","checkpoint.deleted","snapshot.created","snapshot.deleted","patch.applied","patch.failed","process.started","process.exited","process.lost","service.started","service.ready","service.restarted","service.stopped","service.failed"] as const
export const IDLE_ACTIONS = ["hibernate","kill"] as const
export const LANGUAGES = ["python","node","typescript","deno","bun","shell"] as const
export const LANGUAGE_ALIASES = {"py":"python","python3":"python","javascript":"node","js":"node","ts":"typescript","bash":"shell","sh":"shell"} as const
export const LOGIN_SHELL = "case $SHELL in */sh|*/ash|*/dash|*/nologin|*/false|\"\") ;; *) [ -x \"$SHELL\" ] && exec \"$SHELL\" -l ;; esac; command -v bash >/dev/null 2>&1 && exec bash -l; exec sh -l" as const
export const ONE_BASE = "a snapshot has its runtime already: leave runtime out" as const
export const ONE_PLACE = "a page begins at a cursor or at an offset: leave one out" as const
export const OUTCOMES = ["completed","failed","timeout","cancelled"] as const
export const PACKAGES_NEED_RUNTIME = "packages are installed over a runtime: leave snapshot out, or install them in a sandbox and make a snapshot of it" as const
export const PERMISSION_MODES = ["default","acceptEdits","bypassPermissions","plan","dontAsk","auto"] as const
export const PROCESS_KINDS = ["command","job","terminal","service"] as const
export const RESOURCE_BOUNDS = {"memoryBytes":[16777216,1099511627776],"cpuMillis":[10,1000000],"diskBytes":[16777216,1125899906842624],"pids":[16,100000]} as const
export const SANDBOX_STATUSES = ["creating","running","paused","hibernated","stopped","failed"] as const
export const SERVICE_NAME = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/
export const SERVICE_STATUSES = ["installing","starting","running","ready","failed","stopped"] as const

export const serverInfoShape: Shape = { fields: { version: 'string', engine: 'string', isolation: 'string', capabilities: { map: { either: [{ is: true }, { fields: { missing: 'string' } }] } }, machine: { fields: { memoryBytes: 'number', cpuMillis: 'number', diskBytes: 'number', pids: 'number' } }, storage: { fields: { clone: 'string', diskLimit: 'boolean', stacks: 'boolean' } }, disk: { fields: { freeBytes: 'number', roomBytes: 'number', low: { either: [null, 'string'] } } }, sandboxes: 'number', warm: { fields: { ready: 'number', target: 'number', min: 'number', max: 'number' } }, startedAt: 'string' } }
export const prunedShape: Shape = { fields: { dryRun: 'boolean', images: { list: { fields: { name: 'string', sizeBytes: 'number' } } }, checkpoints: { list: { fields: { id: 'string', sandboxId: 'string', name: 'string', sizeBytes: { either: [null, 'number'] } } } }, sandboxes: { list: 'string' }, freedBytes: 'number' } }
export const sandboxStatusShape: Shape = 'string'
export const timeoutsInfoShape: Shape = { fields: { idleMs: 'number', executionMs: 'number', pausedMs: 'number', onIdle: 'string' } }
export const patchRunShape: Shape = { fields: { patchId: 'string', status: 'string', exitCode: { either: [null, 'number'] }, output: 'string', reason: { either: [null, 'string'] }, at: { either: [null, 'string'] } } }
export const createdSandboxShape: Shape = { fields: { id: 'string', name: { either: [null, 'string'] }, description: { either: [null, 'string'] }, status: sandboxStatusShape, reason: { either: [null, 'string'] }, runtime: 'string', image: { either: [null, 'string'] }, engine: 'string', isolation: 'string', metadata: { map: 'any' }, project: { either: [null, 'string'] }, env: { map: 'string' }, resources: { fields: { memoryBytes: 'number', cpuMillis: 'number', diskBytes: 'number', pids: 'number' } }, network: { fields: { enabled: 'boolean', port: { either: [null, 'number'] } } }, url: { either: [null, 'string'] }, user: 'string', workdir: 'string', storeAccess: 'boolean', keepAwake: 'boolean', timeouts: timeoutsInfoShape, origin: { either: [null, { fields: { kind: 'string', id: 'string' } }] }, terminatesAt: { either: [null, 'string'] }, createdAt: 'string', updatedAt: 'string', stoppedAt: { either: [null, 'string'] }, token: 'string', tokenExpiresAt: 'string', patches: { optional: { list: patchRunShape } } } }
export const awakeReasonShape: Shape = { fields: { kind: 'string', id: { optional: 'string' } } }
export const awakeShape: Shape = { fields: { reasons: { list: awakeReasonShape }, sleepsAt: { either: [null, 'string'] } } }
export const sandboxDetailShape: Shape = { fields: { id: 'string', name: { either: [null, 'string'] }, description: { either: [null, 'string'] }, status: sandboxStatusShape, reason: { either: [null, 'string'] }, runtime: 'string', image: { either: [null, 'string'] }, engine: 'string', isolation: 'string', metadata: { map: 'any' }, project: { either: [null, 'string'] }, env: { map: 'string' }, resources: { fields: { memoryBytes: 'number', cpuMillis: 'number', diskBytes: 'number', pids: 'number' } }, network: { fields: { enabled: 'boolean', port: { either: [null, 'number'] } } }, url: { either: [null, 'string'] }, user: 'string', workdir: 'string', storeAccess: 'boolean', keepAwake: 'boolean', timeouts: timeoutsInfoShape, origin: { either: [null, { fields: { kind: 'string', id: 'string' } }] }, terminatesAt: { either: [null, 'string'] }, createdAt: 'string', updatedAt: 'string', stoppedAt: { either: [null, 'string'] }, awake: { either: [null, awakeShape] } } }
export const sandboxPageShape: Shape = { fields: { sandboxes: { list: sandboxDetailShape }, total: 'number', cursor: { optional: 'string' } } }
export const sandboxShape: Shape = { fields: { id: 'string', name: { either: [null, 'string'] }, description: { either: [null, 'string'] }, status: sandboxStatusShape, reason: { either: [null, 'string'] }, runtime: 'string', image: { either: [null, 'string'] }, engine: 'string', isolation: 'string', metadata: { map: 'any' }, project: { either: [null, 'string'] }, env: { map: 'string' }, resources: { fields: { memoryBytes: 'number', cpuMillis: 'number', diskBytes: 'number', pids: 'number' } }, network: { fields: { enabled: 'boolean', port: { either: [null, 'number'] } } }, url: { either: [null, 'string'] }, user: 'string', workdir: 'string', storeAccess: 'boolean', keepAwake: 'boolean', timeouts: timeoutsInfoShape, origin: { either: [null, { fields: { kind: 'string', id: 'string' } }] }, terminatesAt: { either: [null, 'string'] }, createdAt: 'string', updatedAt: 'string', stoppedAt: { either: [null, 'string'] } } }
export const sandboxUsageShape: Shape = { fields: { memoryBytes: 'number', memoryPeakBytes: 'number', cpuUsec: 'number', pids: 'number', oomKills: 'number', diskBytes: 'number' } }
export const outcomeShape: Shape = 'string'
export const runResultShape: Shape = { fields: { processId: 'string', outcome: outcomeShape, exitCode: 'number', signal: { either: [null, 'string'] }, timedOut: 'boolean', oom: 'boolean', durationMs: 'number', hint: { optional: 'string' }, autoResumed: 'boolean', stdout: 'string', stderr: 'string', truncated: 'boolean', droppedBytes: 'number', sandboxId: 'string' } }
export const wokenSandboxShape: Shape = { fields: { id: 'string', name: { either: [null, 'string'] }, description: { either: [null, 'string'] }, status: sandboxStatusShape, reason: { either: [null, 'string'] }, runtime: 'string', image: { either: [null, 'string'] }, engine: 'string', isolation: 'string', metadata: { map: 'any' }, project: { either: [null, 'string'] }, env: { map: 'string' }, resources: { fields: { memoryBytes: 'number', cpuMillis: 'number', diskBytes: 'number', pids: 'number' } }, network: { fields: { enabled: 'boolean', port: { either: [null, 'number'] } } }, url: { either: [null, 'string'] }, user: 'string', workdir: 'string', storeAccess: 'boolean', keepAwake: 'boolean', timeouts: timeoutsInfoShape, origin: { either: [null, { fields: { kind: 'string', id: 'string' } }] }, terminatesAt: { either: [null, 'string'] }, createdAt: 'string', updatedAt: 'string', stoppedAt: { either: [null, 'string'] }, patches: { optional: { list: patchRunShape } } } }
export const forksShape: Shape = { fields: { forks: { list: { either: [{ fields: { ok: { is: true }, sandbox: createdSandboxShape } }, { fields: { ok: { is: false }, error: { fields: { code: 'string', message: 'string', hint: { optional: 'string' } } } } }] } }, frozenMs: 'number', memory: 'boolean' } }
export const checkpointInfoShape: Shape = { fields: { id: 'string', sandboxId: 'string', name: 'string', memory: 'boolean', sizeBytes: { either: [null, 'number'] }, frozenMs: 'number', createdAt: 'string' } }
export const checkpointPageShape: Shape = { fields: { checkpoints: { list: checkpointInfoShape }, total: 'number', cursor: { optional: 'string' } } }
export const restoredSandboxShape: Shape = { fields: { sandbox: sandboxShape, services: { list: { fields: { name: 'string', outcome: 'string', reason: { either: [null, 'string'] } } } }, memory: 'boolean' } }
export const patchInfoShape: Shape = { fields: { id: 'string', checkpointId: 'string', sequence: 'number', script: 'string', description: { either: [null, 'string'] }, createdAt: 'string' } }
export const snapshotInfoShape: Shape = { fields: { id: 'string', name: { either: [null, 'string'] }, tag: { either: [null, 'string'] }, description: { either: [null, 'string'] }, sandboxId: { either: [null, 'string'] }, checkpointId: { either: [null, 'string'] }, parentId: { either: [null, 'string'] }, runtime: 'string', memory: 'boolean', sizeBytes: { either: [null, 'number'] }, createdAt: 'string' } }
export const snapshotPageShape: Shape = { fields: { snapshots: { list: snapshotInfoShape }, total: 'number', cursor: { optional: 'string' } } }
export const snapshotLineageShape: Shape = { fields: { lineage: { list: { fields: { id: 'string', name: { either: [null, 'string'] }, tag: { either: [null, 'string'] }, createdAt: 'string', deleted: 'boolean' } } }, children: { list: { fields: { id: 'string', name: { either: [null, 'string'] }, tag: { either: [null, 'string'] }, createdAt: 'string', deleted: 'boolean', parentId: 'string' } } } } }
export const eventTypeShape: Shape = 'string'
export const sandboxEventShape: Shape = { fields: { id: 'string', sandboxId: 'string', type: eventTypeShape, data: { map: 'any' }, createdAt: 'string' } }
export const eventPageShape: Shape = { fields: { events: { list: sandboxEventShape }, total: 'number', more: 'boolean' } }
export const eventsUrlShape: Shape = { fields: { url: 'string', expiresAt: 'string' } }
export const sandboxTokenShape: Shape = { fields: { token: 'string', expiresAt: 'string' } }
export const sessionTokenShape: Shape = { fields: { id: 'string', sandboxId: 'string', description: { either: [null, 'string'] }, createdAt: 'string', expiresAt: 'string', token: 'string' } }
export const sessionTokenInfoShape: Shape = { fields: { id: 'string', sandboxId: 'string', description: { either: [null, 'string'] }, createdAt: 'string', expiresAt: 'string', lastUsedAt: { either: [null, 'string'] } } }
export const magicLinkShape: Shape = { fields: { url: 'string', expiresAt: 'string', redirectUrl: 'string' } }
export const sessionShape: Shape = { fields: { sandboxId: 'string', name: { either: [null, 'string'] }, tokenId: { either: [null, 'string'] }, expiresAt: 'string' } }
export const execResultShape: Shape = { fields: { processId: 'string', outcome: outcomeShape, exitCode: 'number', signal: { either: [null, 'string'] }, timedOut: 'boolean', oom: 'boolean', durationMs: 'number', hint: { optional: 'string' }, autoResumed: 'boolean', stdout: 'string', stderr: 'string', truncated: 'boolean', droppedBytes: 'number' } }
export const processKindShape: Shape = 'string'
export const startedProcessShape: Shape = { fields: { kind: processKindShape, id: 'string', sandboxId: 'string', command: { either: ['string', { list: 'string' }] }, status: 'string', outcome: { either: [null, outcomeShape] }, reason: { either: [null, 'string'] }, jobStatus: 'string', pid: { either: [null, 'number'] }, cwd: 'string', user: 'string', terminal: 'boolean', terminalId: { either: [null, 'string'] }, service: { either: [null, 'string'] }, keepAwake: 'boolean', maxRunAfterDisconnectMs: { either: [null, 'number'] }, startedAt: 'string', endedAt: { either: [null, 'string'] }, outputBytes: 'number', keepOutputBytes: 'number', result: { either: [null, { fields: { exitCode: 'number', signal: { either: [null, 'string'] }, timedOut: 'boolean', oom: 'boolean', durationMs: 'number', hint: { optional: 'string' } } }] }, autoResumed: 'boolean' } }
export const processInfoShape: Shape = { fields: { kind: processKindShape, id: 'string', sandboxId: 'string', command: { either: ['string', { list: 'string' }] }, status: 'string', outcome: { either: [null, outcomeShape] }, reason: { either: [null, 'string'] }, jobStatus: 'string', pid: { either: [null, 'number'] }, cwd: 'string', user: 'string', terminal: 'boolean', terminalId: { either: [null, 'string'] }, service: { either: [null, 'string'] }, keepAwake: 'boolean', maxRunAfterDisconnectMs: { either: [null, 'number'] }, startedAt: 'string', endedAt: { either: [null, 'string'] }, outputBytes: 'number', keepOutputBytes: 'number', result: { either: [null, { fields: { exitCode: 'number', signal: { either: [null, 'string'] }, timedOut: 'boolean', oom: 'boolean', durationMs: 'number', hint: { optional: 'string' } } }] } } }
export const processOutputShape: Shape = { fields: { stdout: 'string', stderr: 'string', truncated: 'boolean', droppedBytes: 'number', outputBytes: 'number' } }
export const outputChannelShape: Shape = 'string'
export const outputUrlShape: Shape = { fields: { url: 'string', channel: outputChannelShape, expiresAt: 'string' } }
export const terminalInfoShape: Shape = { fields: { id: 'string', sandboxId: 'string', pty: 'boolean', status: 'string', encoding: 'string', processId: { either: [null, 'string'] }, channel: { either: [null, 'string'] }, keepAwake: 'boolean', createdAt: 'string' } }
export const terminalCommandInfoShape: Shape = { fields: { id: 'string', terminalId: 'string', command: 'string', status: 'string', outcome: { either: [null, outcomeShape] }, stdout: 'string', stderr: 'string', truncated: 'boolean', droppedBytes: 'number', exitCode: { either: [null, 'number'] }, durationMs: { either: [null, 'number'] }, startedAt: 'string', finishedAt: { either: [null, 'string'] } } }
export const languageShape: Shape = 'string'
export const codeResultShape: Shape = { fields: { processId: 'string', outcome: outcomeShape, exitCode: 'number', signal: { either: [null, 'string'] }, timedOut: 'boolean', oom: 'boolean', durationMs: 'number', hint: { optional: 'string' }, autoResumed: 'boolean', stdout: 'string', stderr: 'string', truncated: 'boolean', droppedBytes: 'number', language: languageShape, output: 'string' } }
export const agentSessionInfoShape: Shape = { fields: { sessionId: 'string', sandboxId: 'string', running: 'boolean', startedAt: 'string', endedAt: { either: [null, 'string'] }, exitCode: { either: [null, 'number'] }, claudeSessionId: { either: [null, 'string'] } } }
export const fileEntryShape: Shape = { fields: { name: 'string', path: 'string', type: 'string', sizeBytes: 'number', mode: 'string', uid: 'number', gid: 'number', modifiedAt: 'string', target: { optional: 'string' } } }
export const fileListShape: Shape = { fields: { path: 'string', entries: { list: fileEntryShape }, truncated: 'boolean' } }
export const batchResultShape: Shape = { fields: { path: 'string', success: 'boolean', error: { optional: 'string' }, code: { optional: 'string' }, file: { optional: fileEntryShape } } }
export const signedUrlShape: Shape = { fields: { url: 'string', method: 'string', expiresAt: 'string' } }
export const watcherInfoShape: Shape = { fields: { id: 'string', sandboxId: 'string', path: 'string', includeContent: 'boolean', ignored: { list: 'string' }, encoding: 'string', status: 'string', reason: { either: [null, 'string'] }, channel: 'string', createdAt: 'string' } }
export const overlayInfoShape: Shape = { fields: { id: 'string', sandboxId: 'string', source: 'string', target: 'string', strategy: 'string', ignore: { list: 'string' }, createdAt: 'string', copyStatus: 'string', copyError: { optional: 'string' }, stats: { fields: { copiedFiles: 'number', copiedDirs: 'number', linkedDirs: 'number', skipped: { list: 'string' } } } } }
export const serviceInfoShape: Shape = { fields: { name: 'string', sandboxId: 'string', start: 'string', install: { optional: 'string' }, path: 'string', originalPath: { optional: 'string' }, envFile: { optional: 'string' }, environment: { map: 'string' }, port: { optional: 'number' }, url: { optional: 'string' }, status: 'string', reason: { optional: 'string' }, pid: { optional: 'number' }, processId: { optional: 'string' }, autostart: 'boolean', keepAwake: 'boolean', restartPolicy: 'string', maxRestarts: 'number', restartCount: 'number', healthy: { optional: 'boolean' }, healthStatus: { optional: 'string' }, createdAt: 'string', updatedAt: 'string' } }
export const serviceLogsShape: Shape = { fields: { processId: { either: [null, 'string'] }, stdout: 'string', stderr: 'string', truncated: 'boolean', droppedBytes: 'number' } }
export const listeningPortShape: Shape = { fields: { port: 'number', address: 'string', uid: 'number', pid: { optional: 'number' } } }
export const previewShape: Shape = { fields: { sandboxId: 'string', port: 'number', url: 'string', domain: { optional: 'string' }, authConfig: { optional: { fields: { type: { is: "token" } } } }, token: { optional: 'string' }, createdAt: 'string' } }
export const signalStatusShape: Shape = { fields: { status: 'string', channel: 'string', wsUrl: 'string' } }
export const storeKeysShape: Shape = { fields: { keys: { list: 'string' }, truncated: 'boolean', cursor: { optional: 'string' } } }
export const storeBatchResultShape: Shape = { fields: { applied: 'number', ok: { is: true } } }
export const storeEntryShape: Shape = { fields: { value: 'any', expires_at: { either: [null, 'string'] } } }
export const storeSetShape: Shape = { fields: { ok: { is: true }, expires_at: { either: [null, 'string'] } } }
export const storeDeletedShape: Shape = { fields: { deleted: 'boolean', ok: { is: true } } }
export const runtimeInfoShape: Shape = { fields: { name: 'string', description: 'string', ready: 'boolean', image: { either: [null, 'string'] }, source: { either: [{ fields: { kind: { is: "host" } } }, { fields: { kind: { is: "debian" }, suite: 'string' } }, { fields: { kind: { is: "oci" }, reference: 'string' } }, { fields: { kind: { is: "directory" }, path: 'string' } }, { fields: { kind: { is: "tar" }, path: 'string' } }, { fields: { kind: { is: "packages" }, base: 'string', dependencies: { list: 'string' }, packages: { list: 'string' }, pip: { list: 'string' } } }] }, sizeBytes: { either: [null, 'number'] }, createdAt: { either: [null, 'string'] }, versions: { map: 'string' } } }
export const imageInfoShape: Shape = { fields: { name: 'string', digest: 'string', source: { either: [{ fields: { kind: { is: "host" } } }, { fields: { kind: { is: "debian" }, suite: 'string' } }, { fields: { kind: { is: "oci" }, reference: 'string' } }, { fields: { kind: { is: "directory" }, path: 'string' } }, { fields: { kind: { is: "tar" }, path: 'string' } }, { fields: { kind: { is: "packages" }, base: 'string', dependencies: { list: 'string' }, packages: { list: 'string' }, pip: { list: 'string' } } }] }, sizeBytes: 'number', createdAt: 'string', runtimes: { list: 'string' } } }
export const attachServerMessageShape: Shape = { either: [{ fields: { type: { is: "start" }, process: processInfoShape, truncated: 'boolean', droppedBytes: 'number' } }, { fields: { type: { is: "replay-end" } } }, { fields: { type: { is: "exit" }, outcome: outcomeShape, exitCode: 'number', signal: { either: [null, 'string'] }, timedOut: 'boolean', oom: 'boolean', durationMs: 'number', hint: { optional: 'string' } } }, { fields: { type: { is: "error" }, error: { fields: { code: 'string', message: 'string' } } } }] }
export const createProgressShape: Shape = { either: [{ fields: { type: { is: "progress" }, stage: 'string', message: 'string', fraction: { optional: 'number' } } }, { fields: { type: { is: "done" }, sandbox: createdSandboxShape } }, { fields: { type: { is: "error" }, error: { fields: { code: 'string', message: 'string', hint: { optional: 'string' }, retryable: 'boolean', details: { optional: { map: 'any' } } } } } }] }
export const execLineShape: Shape = { either: [{ fields: { type: { is: "start" }, sandboxId: 'string', processId: 'string', autoResumed: 'boolean' } }, { fields: { type: { is: "stdout" }, data: 'string', encoding: { optional: { is: "base64" } } } }, { fields: { type: { is: "stderr" }, data: 'string', encoding: { optional: { is: "base64" } } } }, { fields: { type: { is: "exit" }, processId: 'string', outcome: outcomeShape, exitCode: 'number', signal: { either: [null, 'string'] }, timedOut: 'boolean', oom: 'boolean', durationMs: 'number', hint: { optional: 'string' }, autoResumed: 'boolean', truncated: 'boolean', droppedBytes: 'number' } }, { fields: { type: { is: "error" }, error: { fields: { code: 'string', message: 'string' } } } }] }
export const imageProgressShape: Shape = { either: [{ fields: { type: { is: "progress" }, stage: 'string', message: 'string', fraction: { optional: 'number' } } }, { fields: { type: { is: "done" }, image: imageInfoShape } }, { fields: { type: { is: "error" }, error: { fields: { code: 'string', message: 'string', hint: { optional: 'string' }, retryable: 'boolean', details: { optional: { map: 'any' } } } } } }] }
export const runProgressShape: Shape = { either: [{ fields: { type: { is: "progress" }, stage: 'string', message: 'string', fraction: { optional: 'number' } } }, { fields: { type: { is: "done" }, result: runResultShape } }, { fields: { type: { is: "error" }, error: { fields: { code: 'string', message: 'string', hint: { optional: 'string' }, retryable: 'boolean', details: { optional: { map: 'any' } } } } } }] }
export const signalEventShape: Shape = { either: [{ fields: { signal: { is: "port" }, port: 'number', type: 'string', url: 'string' } }, { fields: { signal: { is: "server-ready" }, port: 'number', url: 'string' } }, { fields: { signal: { is: "error" }, message: 'string' } }, { fields: { signal: 'string', data: { optional: 'any' } } }] }
export const signalMessageShape: Shape = { either: [{ fields: { type: { is: "start" } } }, { fields: { type: { is: "signal" }, event: signalEventShape } }, { fields: { type: { is: "overflow" } } }, { fields: { type: { is: "exit" } } }, { fields: { type: { is: "error" }, error: { fields: { code: 'string', message: 'string' } } } }] }
export const watcherMessageShape: Shape = { either: [{ fields: { type: { is: "start" }, watcher: watcherInfoShape } }, { fields: { type: { is: "change" }, event: 'string', path: 'string', content: { optional: 'string' }, contentOmitted: { optional: 'string' } } }, { fields: { type: { is: "overflow" } } }, { fields: { type: { is: "exit" } } }, { fields: { type: { is: "error" }, error: { fields: { code: 'string', message: 'string' } } } }] }

/** What a call takes and gives, if it is JSON. */
export interface Calls {
  health: { body: undefined; response: {
    status: "ok"
    version: string
  } }
  ready: { body: undefined; response: {
    ready: boolean
    reason?: string | undefined
  } }
  serverInfo: { body: undefined; response: ServerInfo }
  prune: { body: Prune; response: Pruned }
  createSandbox: { body: CreateSandbox; response: CreatedSandbox }
  listSandboxes: { body: undefined; response: SandboxPage }
  getSandbox: { body: undefined; response: SandboxDetail }
  updateSandbox: { body: UpdateSandbox; response: Sandbox }
  deleteSandbox: { body: undefined; response: Sandbox }
  sandboxUsage: { body: undefined; response: SandboxUsage }
  run: { body: Run; response: RunResult }
  pauseSandbox: { body: undefined; response: Sandbox }
  resumeSandbox: { body: undefined; response: WokenSandbox }
  hibernateSandbox: { body: undefined; response: Sandbox }
  wakeSandbox: { body: {
    /** A new idle timeout. */
    timeout?: number | string | undefined
  }; response: WokenSandbox }
  setTimeout: { body: Timeouts; response: Sandbox }
  forkSandbox: { body: ForkSandbox; response: Forks }
  listSandboxPatches: { body: undefined; response: {
    patches: PatchRun[]
  } }
  createCheckpoint: { body: CreateCheckpoint; response: CheckpointInfo }
  listCheckpoints: { body: undefined; response: {
    checkpoints: CheckpointInfo[]
  } }
  listAllCheckpoints: { body: undefined; response: CheckpointPage }
  restoreCheckpoint: { body: undefined; response: RestoredSandbox }
  deleteCheckpoint: { body: undefined; response: undefined }
  getCheckpoint: { body: undefined; response: CheckpointInfo }
  createFromCheckpoint: { body: CopySandbox; response: CreatedSandbox }
  createPatch: { body: CreatePatch; response: PatchInfo }
  listPatches: { body: undefined; response: {
    patches: PatchInfo[]
  } }
  deletePatch: { body: undefined; response: undefined }
  createSnapshot: { body: CreateSnapshot; response: SnapshotInfo }
  listSnapshots: { body: undefined; response: SnapshotPage }
  getSnapshot: { body: undefined; response: SnapshotInfo }
  updateSnapshot: { body: UpdateSnapshot; response: SnapshotInfo }
  deleteSnapshot: { body: undefined; response: undefined }
  snapshotLineage: { body: undefined; response: SnapshotLineage }
  exportSnapshot: { body: undefined; response: undefined }
  importSnapshot: { body: undefined; response: SnapshotInfo }
  listEvents: { body: undefined; response: EventPage }
  signEvents: { body: SignEvents; response: EventsUrl }
  readSignedEvents: { body: undefined; response: undefined }
  createToken: { body: CreateToken; response: SandboxToken }
  createSessionToken: { body: CreateSessionToken; response: SessionToken }
  listSessionTokens: { body: undefined; response: {
    tokens: SessionTokenInfo[]
  } }
  getSessionToken: { body: undefined; response: SessionTokenInfo }
  revokeSessionToken: { body: undefined; response: undefined }
  createMagicLink: { body: CreateMagicLink; response: MagicLink }
  openMagicLink: { body: undefined; response: undefined }
  getSession: { body: undefined; response: Session }
  endSession: { body: undefined; response: undefined }
  exec: { body: Exec; response: ExecResult }
  startProcess: { body: StartProcess; response: StartedProcess }
  listProcesses: { body: undefined; response: {
    processes: ProcessInfo[]
    /** How many there are, without limit and offset. */
    total: number
  } }
  getProcess: { body: undefined; response: ProcessInfo }
  killProcess: { body: undefined; response: ProcessInfo }
  signalProcess: { body: {
    /** A name or number. Default: SIGKILL. */
    signal?: number | string | undefined
    /** Signal its whole session and, with SIGKILL, everything else that it started. Default: true. */
    group?: boolean | undefined
  }; response: undefined }
  writeStdin: { body: {
    /** At most 8 MiB, counted after decoding. */
    data?: string | undefined
    encoding?: "utf8" | "base64" | undefined
    /** Close stdin after the data. */
    end?: boolean | undefined
  }; response: undefined }
  resizeTerminal: { body: {
    cols: number
    rows: number
  }; response: undefined }
  processOutput: { body: undefined; response: ProcessOutput }
  signOutput: { body: SignOutput; response: OutputUrl }
  readSignedOutput: { body: undefined; response: undefined }
  attachProcess: { body: undefined; response: undefined }
  createTerminal: { body: CreateTerminal; response: TerminalInfo }
  listTerminals: { body: undefined; response: {
    terminals: TerminalInfo[]
  } }
  getTerminal: { body: undefined; response: TerminalInfo }
  deleteTerminal: { body: undefined; response: undefined }
  runTerminalCommand: { body: RunTerminalCommand; response: TerminalCommandInfo }
  listTerminalCommands: { body: undefined; response: {
    commands: TerminalCommandInfo[]
  } }
  getTerminalCommand: { body: undefined; response: TerminalCommandInfo }
  runCode: { body: RunCode; response: CodeResult }
  startAgent: { body: StartAgent; response: AgentSessionInfo }
  listAgents: { body: undefined; response: {
    sessions: AgentSessionInfo[]
  } }
  getAgent: { body: undefined; response: AgentSessionInfo }
  promptAgent: { body: {
    text: string
    resume?: string | undefined
  }; response: undefined }
  interruptAgent: { body: undefined; response: undefined }
  configureAgent: { body: ConfigureAgent; response: undefined }
  readFile: { body: undefined; response: undefined }
  writeFile: { body: undefined; response: FileEntry }
  removeFile: { body: undefined; response: undefined }
  listFiles: { body: undefined; response: FileList }
  statFile: { body: undefined; response: FileEntry }
  makeDirectory: { body: {
    /** Absolute, or relative to the working directory of the sandbox. */
    path: string
    /** Create missing parents, and succeed if the directory exists. Default: true. */
    parents?: boolean | undefined
    mode?: number | string | undefined
    owner?: string | undefined
  }; response: FileEntry }
  movePath: { body: {
    /** Absolute, or relative to the working directory of the sandbox. */
    from: string
    /** Absolute, or relative to the working directory of the sandbox. */
    to: string
    overwrite?: boolean | undefined
  }; response: FileEntry }
  copyPath: { body: {
    /** Absolute, or relative to the working directory of the sandbox. */
    from: string
    /** Absolute, or relative to the working directory of the sandbox. */
    to: string
    recursive?: boolean | undefined
    overwrite?: boolean | undefined
  }; response: FileEntry }
  readArchive: { body: undefined; response: undefined }
  writeArchive: { body: undefined; response: {
    count: number
  } }
  batchFiles: { body: {
    /** Sorted by path; the last operation on a path wins. */
    files: BatchOperation[]
  }; response: {
    results: BatchResult[]
  } }
  signFile: { body: SignFile; response: SignedUrl }
  downloadSigned: { body: undefined; response: undefined }
  uploadSigned: { body: undefined; response: FileEntry }
  createWatcher: { body: CreateWatcher; response: WatcherInfo }
  listWatchers: { body: undefined; response: {
    watchers: WatcherInfo[]
  } }
  getWatcher: { body: undefined; response: WatcherInfo }
  deleteWatcher: { body: undefined; response: undefined }
  watcherEvents: { body: undefined; response: undefined }
  readEnvFile: { body: undefined; response: {
    variables: Record<string, string>
  } }
  updateEnvFile: { body: {
    variables: Record<string, string>
  }; response: {
    keys: string[]
  } }
  removeEnvKeys: { body: undefined; response: {
    keys: string[]
  } }
  createOverlay: { body: CreateOverlay; response: OverlayInfo }
  listOverlays: { body: undefined; response: {
    overlays: OverlayInfo[]
  } }
  getOverlay: { body: undefined; response: OverlayInfo }
  deleteOverlay: { body: undefined; response: undefined }
  startService: { body: StartService; response: ServiceInfo }
  listServices: { body: undefined; response: {
    services: ServiceInfo[]
  } }
  getService: { body: undefined; response: ServiceInfo }
  deleteService: { body: undefined; response: undefined }
  stopService: { body: undefined; response: ServiceInfo }
  restartService: { body: undefined; response: ServiceInfo }
  serviceLogs: { body: undefined; response: ServiceLogs }
  listPorts: { body: undefined; response: {
    ports: ListeningPort[]
  } }
  createPreview: { body: CreatePreview; response: Preview }
  listPreviews: { body: undefined; response: {
    previews: Preview[]
  } }
  deletePreview: { body: undefined; response: undefined }
  signals: { body: undefined; response: undefined }
  emitSignal: { body: {
    signal: "port"
    port: number
    type: "open" | "close"
    url: string
  } | {
    signal: "server-ready"
    port: number
    url: string
  } | {
    signal: "error"
    message: string
  } | {
    signal: string
    data?: Json | undefined
  }; response: undefined }
  signalStatus: { body: undefined; response: SignalStatus }
  startSignals: { body: undefined; response: SignalStatus }
  stopSignals: { body: undefined; response: SignalStatus }
  emitSignalInside: { body: {
    signal: "port"
    port: number
    type: "open" | "close"
    url: string
  } | {
    signal: "server-ready"
    port: number
    url: string
  } | {
    signal: "error"
    message: string
  } | {
    signal: string
    data?: Json | undefined
  }; response: undefined }
  listStore: { body: undefined; response: StoreKeys }
  batchStore: { body: {
    operations: StoreOperation[]
  }; response: StoreBatchResult }
  storeOperation: { body: StoreKeyOperation; response: StoreEntry | StoreSet | StoreDeleted }
  getStore: { body: undefined; response: StoreEntry }
  setStore: { body: SetStore; response: StoreSet }
  deleteStore: { body: undefined; response: StoreDeleted }
  listOwnStore: { body: undefined; response: StoreKeys }
  batchOwnStore: { body: {
    operations: StoreOperation[]
  }; response: StoreBatchResult }
  ownStoreOperation: { body: StoreKeyOperation; response: StoreEntry | StoreSet | StoreDeleted }
  getOwnStore: { body: undefined; response: StoreEntry }
  setOwnStore: { body: SetStore; response: StoreSet }
  deleteOwnStore: { body: undefined; response: StoreDeleted }
  listRuntimes: { body: undefined; response: {
    runtimes: RuntimeInfo[]
    /** How many there are, without limit and offset. */
    total: number
  } }
  listImages: { body: undefined; response: {
    images: ImageInfo[]
  } }
  pullImage: { body: {
    reference: string
    /** The runtime name. Default: the reference. */
    name?: string | undefined
    /** Allow a registry without TLS. */
    insecure?: boolean | undefined
  }; response: undefined }
  buildImage: { body: {
    /** base, or a runtime that is made of packages, such as bun:1. */
    runtime: string
  }; response: undefined }
  importImage: { body: {
    kind: "directory" | "tar"
    path: string
    name: string
  }; response: undefined }
  uploadImage: { body: undefined; response: undefined }
  collectImages: { body: undefined; response: {
    removed: string[]
    freedBytes: number
  } }
  removeImage: { body: undefined; response: undefined }
}

export const ROUTES = {
  health: { method: 'GET', path: '/health', open: true, response: { fields: { status: { is: "ok" }, version: 'string' } } },
  ready: { method: 'GET', path: '/ready', open: true, response: { fields: { ready: 'boolean', reason: { optional: 'string' } } } },
  serverInfo: { method: 'GET', path: '/v1/info', response: serverInfoShape },
  prune: { method: 'POST', path: '/v1/prune', response: prunedShape },
  createSandbox: { method: 'POST', path: '/v1/sandboxes', response: createdSandboxShape },
  listSandboxes: { method: 'GET', path: '/v1/sandboxes', response: sandboxPageShape },
  getSandbox: { method: 'GET', path: '/v1/sandboxes/{id}', response: sandboxDetailShape },
  updateSandbox: { method: 'PATCH', path: '/v1/sandboxes/{id}', response: sandboxShape },
  deleteSandbox: { method: 'DELETE', path: '/v1/sandboxes/{id}', response: sandboxShape },
  sandboxUsage: { method: 'GET', path: '/v1/sandboxes/{id}/metrics', response: sandboxUsageShape },
  run: { method: 'POST', path: '/v1/run', response: runResultShape },
  pauseSandbox: { method: 'POST', path: '/v1/sandboxes/{id}/pause', response: sandboxShape },
  resumeSandbox: { method: 'POST', path: '/v1/sandboxes/{id}/resume', response: wokenSandboxShape },
  hibernateSandbox: { method: 'POST', path: '/v1/sandboxes/{id}/hibernate', response: sandboxShape },
  wakeSandbox: { method: 'POST', path: '/v1/sandboxes/{id}/wake', response: wokenSandboxShape },
  setTimeout: { method: 'POST', path: '/v1/sandboxes/{id}/timeout', response: sandboxShape },
  forkSandbox: { method: 'POST', path: '/v1/sandboxes/{id}/fork', response: forksShape },
  listSandboxPatches: { method: 'GET', path: '/v1/sandboxes/{id}/patches', response: { fields: { patches: { list: patchRunShape } } } },
  createCheckpoint: { method: 'POST', path: '/v1/sandboxes/{id}/checkpoints', response: checkpointInfoShape },
  listCheckpoints: { method: 'GET', path: '/v1/sandboxes/{id}/checkpoints', response: { fields: { checkpoints: { list: checkpointInfoShape } } } },
  listAllCheckpoints: { method: 'GET', path: '/v1/checkpoints', response: checkpointPageShape },
  restoreCheckpoint: { method: 'POST', path: '/v1/sandboxes/{id}/checkpoints/{cid}/restore', response: restoredSandboxShape },
  deleteCheckpoint: { method: 'DELETE', path: '/v1/sandboxes/{id}/checkpoints/{cid}', response: 'nothing' },
  getCheckpoint: { method: 'GET', path: '/v1/checkpoints/{cid}', response: checkpointInfoShape },
  createFromCheckpoint: { method: 'POST', path: '/v1/checkpoints/{cid}/sandboxes', response: createdSandboxShape },
  createPatch: { method: 'POST', path: '/v1/checkpoints/{cid}/patches', response: patchInfoShape },
  listPatches: { method: 'GET', path: '/v1/checkpoints/{cid}/patches', response: { fields: { patches: { list: patchInfoShape } } } },
  deletePatch: { method: 'DELETE', path: '/v1/checkpoints/{cid}/patches/{patch}', response: 'nothing' },
  createSnapshot: { method: 'POST', path: '/v1/snapshots', response: snapshotInfoShape },
  listSnapshots: { method: 'GET', path: '/v1/snapshots', response: snapshotPageShape },
  getSnapshot: { method: 'GET', path: '/v1/snapshots/{sid}', response: snapshotInfoShape },
  updateSnapshot: { method: 'PATCH', path: '/v1/snapshots/{sid}', response: snapshotInfoShape },
  deleteSnapshot: { method: 'DELETE', path: '/v1/snapshots/{sid}', response: 'nothing' },
  snapshotLineage: { method: 'GET', path: '/v1/snapshots/{sid}/lineage', response: snapshotLineageShape },
  exportSnapshot: { method: 'GET', path: '/v1/snapshots/{sid}/export', response: 'nothing' },
  importSnapshot: { method: 'POST', path: '/v1/snapshots/import', response: snapshotInfoShape },
  listEvents: { method: 'GET', path: '/v1/sandboxes/{id}/events', response: eventPageShape },
  signEvents: { method: 'POST', path: '/v1/sandboxes/{id}/events/sign', response: eventsUrlShape },
  readSignedEvents: { method: 'GET', path: '/v1/signed-events', open: true, response: 'nothing' },
  createToken: { method: 'POST', path: '/v1/sandboxes/{id}/token', response: sandboxTokenShape },
  createSessionToken: { method: 'POST', path: '/v1/sandboxes/{id}/tokens', response: sessionTokenShape },
  listSessionTokens: { method: 'GET', path: '/v1/sandboxes/{id}/tokens', response: { fields: { tokens: { list: sessionTokenInfoShape } } } },
  getSessionToken: { method: 'GET', path: '/v1/sandboxes/{id}/tokens/{tokenId}', response: sessionTokenInfoShape },
  revokeSessionToken: { method: 'DELETE', path: '/v1/sandboxes/{id}/tokens/{tokenId}', response: 'nothing' },
  createMagicLink: { method: 'POST', path: '/v1/sandboxes/{id}/links', response: magicLinkShape },
  openMagicLink: { method: 'GET', path: '/auth/magic/{secret}', open: true, response: 'nothing' },
  getSession: { method: 'GET', path: '/v1/session', response: sessionShape },
  endSession: { method: 'DELETE', path: '/v1/session', response: 'nothing' },
  exec: { method: 'POST', path: '/v1/sandboxes/{id}/exec', response: execResultShape },
  startProcess: { method: 'POST', path: '/v1/sandboxes/{id}/processes', response: startedProcessShape },
  listProcesses: { method: 'GET', path: '/v1/sandboxes/{id}/processes', response: { fields: { processes: { list: processInfoShape }, total: 'number' } } },
  getProcess: { method: 'GET', path: '/v1/sandboxes/{id}/processes/{pid}', response: processInfoShape },
  killProcess: { method: 'DELETE', path: '/v1/sandboxes/{id}/processes/{pid}', response: processInfoShape },
  signalProcess: { method: 'POST', path: '/v1/sandboxes/{id}/processes/{pid}/signal', response: 'nothing' },
  writeStdin: { method: 'POST', path: '/v1/sandboxes/{id}/processes/{pid}/stdin', response: 'nothing' },
  resizeTerminal: { method: 'POST', path: '/v1/sandboxes/{id}/processes/{pid}/resize', response: 'nothing' },
  processOutput: { method: 'GET', path: '/v1/sandboxes/{id}/processes/{pid}/output', response: processOutputShape },
  signOutput: { method: 'POST', path: '/v1/sandboxes/{id}/processes/{pid}/output/sign', response: outputUrlShape },
  readSignedOutput: { method: 'GET', path: '/v1/signed-output', open: true, response: 'nothing' },
  attachProcess: { method: 'GET', path: '/v1/sandboxes/{id}/processes/{pid}/attach', response: 'nothing' },
  createTerminal: { method: 'POST', path: '/v1/sandboxes/{id}/terminals', response: terminalInfoShape },
  listTerminals: { method: 'GET', path: '/v1/sandboxes/{id}/terminals', response: { fields: { terminals: { list: terminalInfoShape } } } },
  getTerminal: { method: 'GET', path: '/v1/sandboxes/{id}/terminals/{tid}', response: terminalInfoShape },
  deleteTerminal: { method: 'DELETE', path: '/v1/sandboxes/{id}/terminals/{tid}', response: 'nothing' },
  runTerminalCommand: { method: 'POST', path: '/v1/sandboxes/{id}/terminals/{tid}/commands', response: terminalCommandInfoShape },
  listTerminalCommands: { method: 'GET', path: '/v1/sandboxes/{id}/terminals/{tid}/commands', response: { fields: { commands: { list: terminalCommandInfoShape } } } },
  getTerminalCommand: { method: 'GET', path: '/v1/sandboxes/{id}/terminals/{tid}/commands/{pid}', response: terminalCommandInfoShape },
  runCode: { method: 'POST', path: '/v1/sandboxes/{id}/code', response: codeResultShape },
  startAgent: { method: 'POST', path: '/v1/sandboxes/{id}/agents', response: agentSessionInfoShape },
  listAgents: { method: 'GET', path: '/v1/sandboxes/{id}/agents', response: { fields: { sessions: { list: agentSessionInfoShape } } } },
  getAgent: { method: 'GET', path: '/v1/sandboxes/{id}/agents/{pid}', response: agentSessionInfoShape },
  promptAgent: { method: 'POST', path: '/v1/sandboxes/{id}/agents/{pid}/prompt', response: 'nothing' },
  interruptAgent: { method: 'POST', path: '/v1/sandboxes/{id}/agents/{pid}/interrupt', response: 'nothing' },
  configureAgent: { method: 'POST', path: '/v1/sandboxes/{id}/agents/{pid}/configure', response: 'nothing' },
  readFile: { method: 'GET', path: '/v1/sandboxes/{id}/files', response: 'nothing' },
  writeFile: { method: 'PUT', path: '/v1/sandboxes/{id}/files', response: fileEntryShape },
  removeFile: { method: 'DELETE', path: '/v1/sandboxes/{id}/files', response: 'nothing' },
  listFiles: { method: 'GET', path: '/v1/sandboxes/{id}/files/list', response: fileListShape },
  statFile: { method: 'GET', path: '/v1/sandboxes/{id}/files/stat', response: fileEntryShape },
  makeDirectory: { method: 'POST', path: '/v1/sandboxes/{id}/files/mkdir', response: fileEntryShape },
  movePath: { method: 'POST', path: '/v1/sandboxes/{id}/files/move', response: fileEntryShape },
  copyPath: { method: 'POST', path: '/v1/sandboxes/{id}/files/copy', response: fileEntryShape },
  readArchive: { method: 'GET', path: '/v1/sandboxes/{id}/files/archive', response: 'nothing' },
  writeArchive: { method: 'PUT', path: '/v1/sandboxes/{id}/files/archive', response: { fields: { count: 'number' } } },
  batchFiles: { method: 'POST', path: '/v1/sandboxes/{id}/files/batch', response: { fields: { results: { list: batchResultShape } } } },
  signFile: { method: 'POST', path: '/v1/sandboxes/{id}/files/sign', response: signedUrlShape },
  downloadSigned: { method: 'GET', path: '/v1/signed-files', open: true, response: 'nothing' },
  uploadSigned: { method: 'PUT', path: '/v1/signed-files', open: true, response: fileEntryShape },
  createWatcher: { method: 'POST', path: '/v1/sandboxes/{id}/watchers', response: watcherInfoShape },
  listWatchers: { method: 'GET', path: '/v1/sandboxes/{id}/watchers', response: { fields: { watchers: { list: watcherInfoShape } } } },
  getWatcher: { method: 'GET', path: '/v1/sandboxes/{id}/watchers/{wid}', response: watcherInfoShape },
  deleteWatcher: { method: 'DELETE', path: '/v1/sandboxes/{id}/watchers/{wid}', response: 'nothing' },
  watcherEvents: { method: 'GET', path: '/v1/sandboxes/{id}/watchers/{wid}/events', response: 'nothing' },
  readEnvFile: { method: 'GET', path: '/v1/sandboxes/{id}/env', response: { fields: { variables: { map: 'string' } } } },
  updateEnvFile: { method: 'PATCH', path: '/v1/sandboxes/{id}/env', response: { fields: { keys: { list: 'string' } } } },
  removeEnvKeys: { method: 'DELETE', path: '/v1/sandboxes/{id}/env', response: { fields: { keys: { list: 'string' } } } },
  createOverlay: { method: 'POST', path: '/v1/sandboxes/{id}/overlays', response: overlayInfoShape },
  listOverlays: { method: 'GET', path: '/v1/sandboxes/{id}/overlays', response: { fields: { overlays: { list: overlayInfoShape } } } },
  getOverlay: { method: 'GET', path: '/v1/sandboxes/{id}/overlays/{oid}', response: overlayInfoShape },
  deleteOverlay: { method: 'DELETE', path: '/v1/sandboxes/{id}/overlays/{oid}', response: 'nothing' },
  startService: { method: 'POST', path: '/v1/sandboxes/{id}/services', response: serviceInfoShape },
  listServices: { method: 'GET', path: '/v1/sandboxes/{id}/services', response: { fields: { services: { list: serviceInfoShape } } } },
  getService: { method: 'GET', path: '/v1/sandboxes/{id}/services/{name}', response: serviceInfoShape },
  deleteService: { method: 'DELETE', path: '/v1/sandboxes/{id}/services/{name}', response: 'nothing' },
  stopService: { method: 'POST', path: '/v1/sandboxes/{id}/services/{name}/stop', response: serviceInfoShape },
  restartService: { method: 'POST', path: '/v1/sandboxes/{id}/services/{name}/restart', response: serviceInfoShape },
  serviceLogs: { method: 'GET', path: '/v1/sandboxes/{id}/services/{name}/logs', response: serviceLogsShape },
  listPorts: { method: 'GET', path: '/v1/sandboxes/{id}/ports', response: { fields: { ports: { list: listeningPortShape } } } },
  createPreview: { method: 'POST', path: '/v1/sandboxes/{id}/previews', response: previewShape },
  listPreviews: { method: 'GET', path: '/v1/sandboxes/{id}/previews', response: { fields: { previews: { list: previewShape } } } },
  deletePreview: { method: 'DELETE', path: '/v1/sandboxes/{id}/previews/{port}', response: 'nothing' },
  signals: { method: 'GET', path: '/v1/sandboxes/{id}/signals', response: 'nothing' },
  emitSignal: { method: 'POST', path: '/v1/sandboxes/{id}/signals', response: 'nothing' },
  signalStatus: { method: 'GET', path: '/v1/sandboxes/{id}/signals/status', response: signalStatusShape },
  startSignals: { method: 'POST', path: '/v1/sandboxes/{id}/signals/start', response: signalStatusShape },
  stopSignals: { method: 'POST', path: '/v1/sandboxes/{id}/signals/stop', response: signalStatusShape },
  emitSignalInside: { method: 'POST', path: '/v1/signals', response: 'nothing' },
  listStore: { method: 'GET', path: '/v1/sandboxes/{id}/store', response: storeKeysShape },
  batchStore: { method: 'POST', path: '/v1/sandboxes/{id}/store/batch', response: storeBatchResultShape },
  storeOperation: { method: 'POST', path: '/v1/sandboxes/{id}/store/key', response: { either: [storeEntryShape, storeSetShape, storeDeletedShape] } },
  getStore: { method: 'GET', path: '/v1/sandboxes/{id}/store/{key}', response: storeEntryShape },
  setStore: { method: 'PUT', path: '/v1/sandboxes/{id}/store/{key}', response: storeSetShape },
  deleteStore: { method: 'DELETE', path: '/v1/sandboxes/{id}/store/{key}', response: storeDeletedShape },
  listOwnStore: { method: 'GET', path: '/v1/store', response: storeKeysShape },
  batchOwnStore: { method: 'POST', path: '/v1/store/batch', response: storeBatchResultShape },
  ownStoreOperation: { method: 'POST', path: '/v1/store/key', response: { either: [storeEntryShape, storeSetShape, storeDeletedShape] } },
  getOwnStore: { method: 'GET', path: '/v1/store/{key}', response: storeEntryShape },
  setOwnStore: { method: 'PUT', path: '/v1/store/{key}', response: storeSetShape },
  deleteOwnStore: { method: 'DELETE', path: '/v1/store/{key}', response: storeDeletedShape },
  listRuntimes: { method: 'GET', path: '/v1/runtimes', response: { fields: { runtimes: { list: runtimeInfoShape }, total: 'number' } } },
  listImages: { method: 'GET', path: '/v1/images', response: { fields: { images: { list: imageInfoShape } } } },
  pullImage: { method: 'POST', path: '/v1/images/pull', response: 'nothing' },
  buildImage: { method: 'POST', path: '/v1/images/build', response: 'nothing' },
  importImage: { method: 'POST', path: '/v1/images/import', response: 'nothing' },
  uploadImage: { method: 'POST', path: '/v1/images/upload', response: 'nothing' },
  collectImages: { method: 'POST', path: '/v1/images/collect', response: { fields: { removed: { list: 'string' }, freedBytes: 'number' } } },
  removeImage: { method: 'DELETE', path: '/v1/images/{name}', response: 'nothing' },
} as const satisfies Record<keyof Calls, { method: string; path: string; open?: true; response: Shape | 'nothing' }>
