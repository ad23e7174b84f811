import {
  type EnvFiles,
  Islet,
  IsletError,
  type LanguageName,
  type Names,
  type Sandbox as Native,
  refuseUnknown,
  type SandboxDetail,
  type Signals,
  type SocketConstructor,
  type Terminals,
  type UrlOfPort,
  type Watchers,
} from '@islet/sdk'
import { MagicLinks, SessionTokens } from './access.ts'
import { FileManager } from './file.ts'
import { FileSystem } from './filesystem.ts'
import { ServerManager } from './server.ts'

export interface SandboxConfig {
  /** The `sandboxUrl` of another handle; or the URL of the server, with `sandboxId`. */
  sandboxUrl: string
  sandboxId?: string
  /** A session token, or the API key. Default: the key of the environment. */
  token?: string
  WebSocket?: SocketConstructor
}

export interface RunCommandOptions {
  cwd?: string
  env?: Record<string, string>
  /** Milliseconds; then the whole command is killed and its exit code is 124. */
  timeout?: number
  /** Resolve at once with exit code 0 and leave the command running. */
  background?: boolean
}

export interface CommandResult {
  stdout: string
  stderr: string
  exitCode: number
  durationMs: number
  timedOut: boolean
  /** True if the command printed more than 64 MiB: the rest is missing. */
  truncated: boolean
}

export interface CodeResult {
  /** What the code printed, on stdout and stderr. */
  output: string
  exitCode: number
  language: string
}

export type Runtime = 'node' | 'python' | 'deno' | 'bun'

export interface SandboxInfo {
  id: string
  provider: 'islet'
  runtime: Runtime
  /** A suspended sandbox is running: its next use wakes it. */
  status: 'running' | 'stopped' | 'error'
  createdAt: Date
  /** Milliseconds without use until the sandbox hibernates; 0: never. */
  timeout: number
  metadata?: Record<string, unknown>
}

const MAX_OUTPUT_BYTES = 64 * 1024 * 1024
const RUNTIMES: readonly Runtime[] = ['python', 'deno', 'bun']
const STATUSES: Partial<Record<SandboxDetail['status'], SandboxInfo['status']>> = {
  stopped: 'stopped',
  failed: 'error',
}

const CONFIG: Names<SandboxConfig> = { sandboxUrl: 1, sandboxId: 1, token: 1, WebSocket: 1 }
const RUN: Names<RunCommandOptions> = { cwd: 1, env: 1, timeout: 1, background: 1 }

export class Sandbox {
  readonly provider = 'islet'
  /** For `new Sandbox({ sandboxUrl, token })`. */
  readonly sandboxUrl: string
  readonly filesystem: FileSystem
  readonly file: FileManager
  readonly terminal: Terminals
  readonly server: ServerManager
  readonly env: EnvFiles
  readonly watcher: Watchers
  readonly signals: Signals
  readonly sessionTokens: SessionTokens
  readonly magicLinks: MagicLinks
  readonly #native: Native

  /** Asks nothing: the first call fails if there is no such sandbox, or the token is not for it. */
  constructor(config: SandboxConfig)
  /** For `compute`. */
  constructor(native: Native, serverUrl: string)
  constructor(given: SandboxConfig | Native, serverUrl?: string) {
    const [native, url] =
      serverUrl === undefined ? handle(given as SandboxConfig) : [given as Native, serverUrl]
    this.#native = native
    this.sandboxUrl = `${url}${PLACE}${native.id}`
    this.filesystem = new FileSystem(native)
    this.file = new FileManager(native)
    this.terminal = native.terminal
    this.server = new ServerManager(native)
    this.env = native.env
    this.watcher = native.watcher
    this.signals = native.signals
    this.sessionTokens = new SessionTokens(native)
    this.magicLinks = new MagicLinks(native)
  }

  get sandboxId(): string {
    return this.#native.id
  }

  /** The singular names of the published client. */
  get signal(): Signals {
    return this.signals
  }

  get sessionToken(): SessionTokens {
    return this.sessionTokens
  }

  get magicLink(): MagicLinks {
    return this.magicLinks
  }

  async runCommand(command: string, options: RunCommandOptions = {}): Promise<CommandResult> {
    refuseUnknown('sandbox.runCommand', options, RUN)
    const { background, ...rest } = options
    const ran = background
      ? await this.#native.runCommand(command, { ...rest, background })
      : await this.#native.exec.run(command, { ...rest, maxOutputBytes: MAX_OUTPUT_BYTES })
    const { stdout, stderr, exitCode, durationMs, timedOut, truncated } = ran
    return { stdout, stderr, exitCode, durationMs, timedOut, truncated }
  }

  /** Without a language, it is detected. Also python3, javascript, typescript, bash and their short names. */
  async runCode(code: string, language?: LanguageName): Promise<CodeResult> {
    const ran = await this.#native.runCode(code, { language, maxOutputBytes: MAX_OUTPUT_BYTES })
    return { output: ran.output, exitCode: ran.exitCode, language: ran.language }
  }

  /** Asks the server; does not wake the sandbox. */
  async getInfo(): Promise<SandboxInfo> {
    const { id, runtime, status, createdAt, timeouts, metadata } = await this.#native.getInfo()
    return {
      id,
      provider: this.provider,
      runtime: RUNTIMES.find((name) => new RegExp(`(^|[/_-])${name}([:@]|$)`).test(runtime)) ?? 'node',
      status: STATUSES[status] ?? 'running',
      createdAt: new Date(createdAt),
      timeout: timeouts.idleMs,
      metadata,
    }
  }

  /** Without `protocol`, the URL has the protocol in which the server serves previews. Another one is refused. */
  getUrl(options: UrlOfPort): Promise<string> {
    return this.#native.getUrl(options)
  }

  /** Removes the sandbox and everything in it. */
  async destroy(): Promise<void> {
    await this.#native.kill()
  }
}

/** In a sandboxUrl, what stands between the URL of the server and the id. */
const PLACE = '/v1/sandboxes/'
/** In place of the URL of a server on the same machine. */
const SOCKET = 'unix:'

function handle(config: SandboxConfig): [Native, string] {
  refuseUnknown('new Sandbox', config, CONFIG)
  const { sandboxUrl, sandboxId, token, WebSocket } = config
  const [server = '', id = sandboxId] = String(sandboxUrl).split(PLACE)
  if (!id || (sandboxId !== undefined && id !== sandboxId))
    throw new IsletError('bad_request', 'The sandboxUrl does not say which sandbox is meant.', {
      hint: `Give the sandboxUrl of another handle (https://server${PLACE}sbx-…), or the URL of the server and sandboxId.`,
    })
  const islet = new Islet({ url: server.startsWith(SOCKET) ? undefined : server, token, WebSocket })
  if (server.startsWith(SOCKET) && islet.url !== server)
    throw new IsletError('bad_request', `This client cannot use the socket of ${sandboxUrl}.`, {
      hint: 'Give the URL of the server in place of the socket.',
    })
  return [islet.sandboxes.handle(id), islet.url]
}
