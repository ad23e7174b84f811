import {
  type CheckpointInfo,
  type CodeResult,
  type CreatePatch,
  type CreatePreview,
  type ExecResult,
  IsletError,
  type LanguageName,
  type ListeningPort,
  type PatchInfo,
  type PatchRun,
  type Preview,
  type ResponseOf,
  type RestoredSandbox,
  type RouteName,
  type SandboxDetail,
  type Sandbox as SandboxInfo,
  type SandboxPage,
  type SandboxStatus,
  type SandboxToken,
  type SandboxUsage,
  type SnapshotInfo,
  type Timeouts,
  type UpdateSandbox,
  type WokenSandbox,
} from '@islet/contract/client'
import { Agents } from '../agent/agents.ts'
import type { CallOptions, Client } from '../client/client.ts'
import { isDue } from '../client/credential.ts'
import type { ClientOptions } from '../client/settings.ts'
import { hasCode } from '../errors.ts'
import type { FromCheckpointOptions } from '../islet/checkpoints.ts'
import { Islet } from '../islet/islet.ts'
import { checkedCheckpoint } from '../islet/refs.ts'
import type { CreateOptions, GetOrCreateOptions, ListOptions } from '../islet/sandboxes.ts'
import { type SnapshotOptions, Snapshots } from '../islet/snapshots.ts'
import { type Abortable, guard } from '../options.ts'
import { type CommandOptions, Exec, STARTED } from '../process/exec.ts'
import { Pty } from '../process/pty.ts'
import { Terminals } from '../process/terminals.ts'
import { CHECKS, STATIC_CHECKS } from './checks.ts'
import { type RunCodeOptions, runCode } from './code.ts'
import { EnvFiles } from './env-files.ts'
import { Events } from './events.ts'
import { Files } from './files.ts'
import { type ForkOptions, type ForkResults, fork } from './fork.ts'
import { MagicLinks } from './magic-links.ts'
import { Services } from './services.ts'
import { SessionTokens } from './session-tokens.ts'
import { Signals } from './signals.ts'
import { Store } from './store.ts'
import { Watchers } from './watchers.ts'

export interface WakeOptions extends Abortable {
  /** A new idle timeout: milliseconds or '10m'; 0: never. Default: unchanged. */
  timeout?: number | string
}

export interface UrlOfPort {
  port: number
  /** Fail with `not_supported` if the URL has another protocol; this does not choose it. Default: any. */
  protocol?: 'http' | 'https'
}

/** Part of the answer to a create. */
interface NewToken {
  token: string
  tokenExpiresAt: string
}

export interface RunCommandOptions extends CommandOptions {
  /** Resolve at once with exit code 0 and leave the command running. */
  background?: boolean
}

/**
 * One isolated Linux computer. `await using sandbox = await Sandbox.create()` removes it at the end of the block. Actions on
 * the whole sandbox are methods here; actions inside it are in groups, like `files` and `exec`.
 */
export class Sandbox {
  readonly id: string
  readonly agent: Agents
  readonly exec: Exec
  readonly files: Files
  readonly pty: Pty
  readonly terminal: Terminals
  readonly watcher: Watchers
  readonly env: EnvFiles
  readonly service: Services
  readonly signals: Signals
  readonly store: Store
  readonly events: Events
  readonly sessionTokens: SessionTokens
  readonly magicLinks: MagicLinks
  readonly #client: Client
  #status: SandboxStatus
  #url: string | null
  #token: SandboxToken | undefined

  static create(options: CreateOptions & ClientOptions = {}): Promise<Sandbox> {
    const [islet, rest] = serverOf(options)
    return islet.sandboxes.create(rest)
  }

  /** The sandbox with this name as it is, or a new one. Callers that ask at the same time get the same sandbox. */
  static getOrCreate(name: string, options: GetOrCreateOptions & ClientOptions = {}): Promise<Sandbox> {
    const [islet, rest] = serverOf(options)
    return islet.sandboxes.getOrCreate(name, rest)
  }

  /** A handle for an existing sandbox, by its id or name. Code `sandbox_not_found` if there is none. */
  static connect(id: string, options: ClientOptions & Abortable = {}): Promise<Sandbox> {
    const [islet, rest] = serverOf(options)
    return islet.sandboxes.connect(id, rest)
  }

  /** The record of a sandbox, by its id or name; by its id also if the sandbox is gone. */
  static get(id: string, options: ClientOptions & Abortable = {}): Promise<SandboxDetail> {
    const [islet, rest] = serverOf(options)
    return islet.sandboxes.get(id, rest)
  }

  static list(options: ListOptions & ClientOptions = {}): Promise<SandboxPage> {
    const [islet, rest] = serverOf(options)
    return islet.sandboxes.list(rest)
  }

  /** A new sandbox that starts from a checkpoint, also if the checkpoint's own sandbox is gone. */
  static createFromCheckpoint(
    id: string,
    options: FromCheckpointOptions & ClientOptions = {},
  ): Promise<Sandbox> {
    const [islet, rest] = serverOf(options)
    return islet.checkpoints.createSandbox(id, rest)
  }

  /** Adds a script that runs once in every sandbox made from the checkpoint. */
  static createCheckpointPatch(
    checkpointId: string,
    options: CreatePatch & ClientOptions & Abortable,
  ): Promise<PatchInfo> {
    const [islet, { signal, ...patch }] = serverOf(options)
    return islet.checkpoints.patches.create(checkpointId, patch, { signal })
  }

  /** In the order in which they are applied. */
  static listCheckpointPatches(
    checkpointId: string,
    options: ClientOptions & Abortable = {},
  ): Promise<PatchInfo[]> {
    const [islet, rest] = serverOf(options)
    return islet.checkpoints.patches.list(checkpointId, rest)
  }

  /** Sandboxes that already ran the patch keep its effects. */
  static deleteCheckpointPatch(
    checkpointId: string,
    patchId: string,
    options: ClientOptions & Abortable = {},
  ): Promise<void> {
    const [islet, rest] = serverOf(options)
    return islet.checkpoints.patches.delete(checkpointId, patchId, rest)
  }

  /** For the SDK itself; callers use `Sandbox.create` and `Sandbox.connect`. */
  constructor(
    client: Client,
    {
      token,
      tokenExpiresAt,
      ...info
    }: Pick<SandboxInfo, 'id' | 'status'> & Partial<NewToken & Pick<SandboxInfo, 'url'>>,
  ) {
    this.#client = client
    this.#status = info.status
    this.#url = info.url ?? null
    if (token && tokenExpiresAt) this.#token = { token, expiresAt: tokenExpiresAt }
    this.id = info.id
    this.agent = new Agents(client, info.id)
    this.exec = new Exec(client, info.id)
    this.files = new Files(client, info.id)
    this.pty = new Pty(client, info.id)
    this.terminal = new Terminals(client, info.id)
    this.watcher = new Watchers(client, info.id)
    this.env = new EnvFiles(client, info.id)
    this.service = new Services(client, info.id)
    this.signals = new Signals(client, info.id)
    this.store = new Store(client, info.id)
    this.events = new Events(client, info.id)
    this.sessionTokens = new SessionTokens(client, info.id)
    this.magicLinks = new MagicLinks(client, info.id)
  }

  /** The same as `id`. */
  get sandboxId(): string {
    return this.id
  }

  /** The preview of `network.port` in the last answer of the server; null if it has none, and before the first answer. */
  get url(): string | null {
    return this.#url
  }

  /** The status in the last answer of the server; `getInfo` asks again. */
  get status(): SandboxStatus {
    return this.#status
  }

  /** Asks the server. Does not wake the sandbox or count as activity. `awake` says why it is awake, or when it will sleep. */
  async getInfo(options: Abortable = {}): Promise<SandboxDetail> {
    return this.#heard(await this.#call('getSandbox', options))
  }

  /** Does not wake the sandbox or count as activity. False also if the sandbox does not exist. */
  async isRunning(options: Abortable = {}): Promise<boolean> {
    try {
      return (await this.getInfo(options)).status === 'running'
    } catch (error) {
      if (hasCode(error, 'sandbox_not_found')) return false
      throw error
    }
  }

  /** Freezes everything inside; memory is kept. `terminatesAt` says when the `paused` timeout, if set, stops the sandbox. */
  async pause(options: Abortable = {}): Promise<SandboxInfo> {
    return this.#heard(await this.#call('pauseSandbox', options))
  }

  /** Lets a paused sandbox continue. So does any call that needs it to run. */
  async resume(options: Abortable = {}): Promise<WokenSandbox> {
    return this.#heard(await this.#call('resumeSandbox', options))
  }

  /** Uses no CPU and, if the engine can, no memory. The files survive a reboot of the machine. */
  async hibernate(options: Abortable = {}): Promise<SandboxInfo> {
    return this.#heard(await this.#call('hibernateSandbox', options))
  }

  /** Lets a hibernated sandbox continue. So does any call that needs it to run. */
  async wake({ timeout, signal }: WakeOptions = {}): Promise<WokenSandbox> {
    return this.#heard(await this.#call('wakeSandbox', { body: { timeout }, signal }))
  }

  /** The idle timeout (milliseconds or '10m'; 0: never), or several timeouts; the others stay. */
  async setTimeout(timeout: number | string | Timeouts, options: Abortable = {}): Promise<SandboxInfo> {
    const body = typeof timeout === 'object' ? timeout : { idle: timeout }
    return this.#heard(await this.#call('setTimeout', { body, ...options }))
  }

  async update(patch: UpdateSandbox, options: Abortable = {}): Promise<SandboxInfo> {
    return this.#heard(await this.#call('updateSandbox', { body: patch, ...options }))
  }

  /** The memory, CPU, processes and disk that the sandbox uses now. */
  usage(options: Abortable = {}): Promise<SandboxUsage> {
    return this.#call('sandboxUsage', options)
  }

  /** The ports on which programs inside listen now. */
  async ports(options: Abortable = {}): Promise<ListeningPort[]> {
    return (await this.#call('listPorts', options)).ports
  }

  /** The preview URL of a port; created if there is none. A program must listen on the port before the URL works. */
  async getUrl({ port, protocol }: UrlOfPort, options: Abortable = {}): Promise<string> {
    const { url } = await this.createPreviewURL({ port, keep: true }, options)
    if (protocol === undefined || url.startsWith(`${protocol}:`)) return url
    throw new IsletError('not_supported', `This server does not serve previews over ${protocol}.`, {
      hint:
        protocol === 'https'
          ? 'Give the server a certificate (ISLET_TLS_CERT), or set ISLET_PREVIEW_DOMAIN to a domain that a TLS proxy serves.'
          : 'Leave protocol out: with ISLET_TLS_CERT or ISLET_PREVIEW_DOMAIN previews are https.',
    })
  }

  /** Creates the preview URL of a port, or changes its domain and whether it asks for a token. */
  createPreviewURL(preview: CreatePreview, options: Abortable = {}): Promise<Preview> {
    return this.#call('createPreview', { body: preview, ...options })
  }

  async listPreviewURLs(options: Abortable = {}): Promise<Preview[]> {
    return (await this.#call('listPreviews', options)).previews
  }

  /** Code `preview_not_found` if the port has none. */
  async deletePreviewURL(port: number, options: Abortable = {}): Promise<void> {
    await this.#call('deletePreview', { params: { port: String(port) }, ...options })
  }

  /**
   * A short-lived token that gives access to this sandbox only; valid for some time yet. With `expiresIn` (milliseconds or '30m'), a new
   * token that is valid that long. Needs the API key. `sessionTokens` last longer and can be revoked.
   */
  async getToken(options: { expiresIn?: number | string } & Abortable = {}): Promise<SandboxToken> {
    const { signal, expiresIn } = options
    if (expiresIn !== undefined) return this.#call('createToken', { body: { expiresIn }, signal })
    const known = (await this.#client.token(signal)) ?? this.#token
    if (known && !isDue(known.token)) return known
    this.#token = await this.#call('createToken', { body: {}, signal })
    return this.#token
  }

  /** Stops the sandbox and removes everything in it. Does nothing if the sandbox is gone. */
  async kill(options: Abortable = {}): Promise<void> {
    try {
      this.#heard(await this.#call('deleteSandbox', options))
    } catch (error) {
      if (!hasCode(error, 'sandbox_not_found')) throw error
    }
  }

  /** Saves files, env, store and services as they are now. Code `conflict` if the name is taken. */
  createCheckpoint(checkpoint: string | { name: string }, options: Abortable = {}): Promise<CheckpointInfo> {
    const body = typeof checkpoint === 'string' ? { name: checkpoint } : checkpoint
    return this.#call('createCheckpoint', { body, ...options })
  }

  /** Oldest first. */
  async listCheckpoints(options: Abortable = {}): Promise<CheckpointInfo[]> {
    return (await this.#call('listCheckpoints', options)).checkpoints
  }

  /** Takes this sandbox back to a checkpoint. Running processes end; services are started again, and the answer says which. */
  async restoreCheckpoint(id: string, options: Abortable = {}): Promise<RestoredSandbox> {
    const params = { cid: checkedCheckpoint(id) }
    const restored = await this.#call('restoreCheckpoint', { params, ...options })
    this.#heard(restored.sandbox)
    return restored
  }

  async deleteCheckpoint(id: string, options: Abortable = {}): Promise<void> {
    await this.#call('deleteCheckpoint', { params: { cid: checkedCheckpoint(id) }, ...options })
  }

  /** The results of the patches of the checkpoint from which the sandbox was made, in their order. */
  async listPatches(options: Abortable = {}): Promise<PatchRun[]> {
    return (await this.#call('listSandboxPatches', options)).patches
  }

  /** Publishes the sandbox as it is now as a base for new sandboxes: `create({ snapshot })`. It outlives the sandbox. */
  createSnapshot(options: SnapshotOptions = {}): Promise<SnapshotInfo> {
    return new Snapshots(this.#client).create({ sandbox: this.id }, options)
  }

  /** A copy of the sandbox as it is now. With `count`, that many copies of the same instant, each with its own result. */
  fork(options?: ForkOptions & { count?: undefined }): Promise<Sandbox>
  fork(options: ForkOptions & { count: number }): Promise<ForkResults>
  async fork(options: ForkOptions & { count?: number } = {}): Promise<Sandbox | ForkResults> {
    const { count, ...rest } = options
    const results = await fork(this.#client, this.id, { ...rest, count: count ?? 1 })
    if (count !== undefined) return results
    const [only] = results
    if (only?.ok) return only.sandbox
    throw only?.error
  }

  /** Runs shell text to its end. A command that fails is a result with its exit code. */
  async runCommand(command: string, options: RunCommandOptions = {}): Promise<ExecResult> {
    const { background, ...rest } = options
    if (!background) return this.exec.run(command, rest)
    const { id, autoResumed } = await this.exec.spawn(command, rest)
    return { ...STARTED, processId: id, autoResumed }
  }

  /** Runs Python, JavaScript, TypeScript or shell; the language is detected if none is given. Code that fails is a result. */
  runCode(
    code: string,
    language?: LanguageName | RunCodeOptions,
    options?: RunCodeOptions,
  ): Promise<CodeResult> {
    return runCode(this.#client, this.id, code, language, options)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill()
  }

  #call<Name extends RouteName>(name: Name, options: CallOptions<Name>): Promise<ResponseOf<Name>> {
    return this.#client.call(name, { ...options, params: { id: this.id, ...options.params } })
  }

  #heard<Info extends SandboxInfo>(info: Info): Info {
    this.#status = info.status
    this.#url = info.url
    return info
  }
}

/** Splits the options of a static method into a client and the rest. */
function serverOf<Options extends ClientOptions>(
  options: Options,
): [Islet, Omit<Options, keyof ClientOptions>] {
  const { url, apiKey, token, fetch, WebSocket, retries, ...rest } = options
  return [new Islet({ url, apiKey, token, fetch, WebSocket, retries }), rest]
}

guard(Sandbox, 'Sandbox', STATIC_CHECKS)
guard(Sandbox.prototype, 'sandbox', CHECKS)
