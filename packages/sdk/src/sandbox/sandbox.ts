import type {
  CheckpointInfo,
  CodeResult,
  CreatePatch,
  CreatePreview,
  ExecResult,
  LanguageName,
  ListeningPort,
  PatchInfo,
  PatchRun,
  Preview,
  RestoredSandbox,
  SandboxDetail,
  Sandbox as SandboxInfo,
  SandboxPage,
  SandboxStatus,
  SandboxToken,
  SandboxUsage,
  SnapshotInfo,
  Timeouts,
  UpdateSandbox,
  WokenSandbox,
} from '@islet/contract/client'
import type { Client } from '../client/client.ts'
import { isDue } from '../client/credential.ts'
import type { ClientOptions } from '../client/settings.ts'
import { hasCode } from '../errors.ts'
import {
  type ForkOptions,
  type ForkResults,
  type FromCheckpointOptions,
  fork,
  SandboxCheckpoints,
} from '../islet/checkpoints.ts'
import { type CreateOptions, type GetOrCreateOptions, Islet, type ListOptions } from '../islet/islet.ts'
import { listPatches } from '../islet/patches.ts'
import { type SnapshotOptions, Snapshots } from '../islet/snapshots.ts'
import { guard } from '../options.ts'
import { type CommandOptions, Exec } from '../process/exec.ts'
import { Pty } from '../process/pty.ts'
import { Terminals } from '../process/terminals.ts'
import { CHECKS, STATIC_CHECKS } from './checks.ts'
import { type RunCodeOptions, runCode } from './code.ts'
import { EnvFiles } from './env-files.ts'
import { Events } from './events.ts'
import { Files } from './files.ts'
import { Life, type WakeOptions } from './life.ts'
import { Previews, type UrlOfPort } from './previews.ts'
import { Services } from './services.ts'
import { Signals } from './signals.ts'
import { Store } from './store.ts'
import { Watchers } from './watchers.ts'

interface Abortable {
  signal?: AbortSignal
}

/** What a create answers with beside the sandbox. */
interface NewToken {
  token: string
  tokenExpiresAt: string
}

export interface RunCommandOptions extends CommandOptions {
  /** Answer at once with exit code 0 and leave the command running. */
  background?: boolean
}

/** One isolated Linux computer. `await using sandbox = await Sandbox.create()` removes it at the end of the block. */
export class Sandbox {
  readonly id: string
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
  readonly #life: Life
  readonly #previews: Previews
  readonly #checkpoints: SandboxCheckpoints
  readonly #client: Client
  #info: SandboxInfo
  #token: SandboxToken | undefined

  static create(options: CreateOptions & ClientOptions = {}): Promise<Sandbox> {
    const [islet, rest] = serverOf(options)
    return islet.sandboxes.create(rest)
  }

  /** The sandbox that has this name, as it is, or a new one with these options: the same for all who ask at once. */
  static getOrCreate(name: string, options: GetOrCreateOptions & ClientOptions = {}): Promise<Sandbox> {
    const [islet, rest] = serverOf(options)
    return islet.sandboxes.getOrCreate(name, rest)
  }

  /** A sandbox that exists, by its id or name. Code `sandbox_not_found` if it does not. */
  static connect(id: string, options: ClientOptions & Abortable = {}): Promise<Sandbox> {
    const [islet, rest] = serverOf(options)
    return islet.sandboxes.connect(id, rest)
  }

  /** What is known about a sandbox, by its id or name; by its id also of one that is gone. */
  static get(id: string, options: ClientOptions & Abortable = {}): Promise<SandboxDetail> {
    const [islet, rest] = serverOf(options)
    return islet.sandboxes.get(id, rest)
  }

  static list(options: ListOptions & ClientOptions = {}): Promise<SandboxPage> {
    const [islet, rest] = serverOf(options)
    return islet.sandboxes.list(rest)
  }

  /** A new sandbox that begins as a checkpoint, whatever became of the one it was made of. */
  static createFromCheckpoint(
    id: string,
    options: FromCheckpointOptions & ClientOptions = {},
  ): Promise<Sandbox> {
    const [islet, rest] = serverOf(options)
    return islet.checkpoints.createSandbox(id, rest)
  }

  /** Adds a script that is run once in every sandbox made from the checkpoint. */
  static createCheckpointPatch(
    checkpointId: string,
    options: CreatePatch & ClientOptions & Abortable,
  ): Promise<PatchInfo> {
    const [islet, { signal, ...patch }] = serverOf(options)
    return islet.checkpoints.patches.create(checkpointId, patch, { signal })
  }

  /** In the order they are applied. */
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

  /** For `Islet`; others use the statics. */
  constructor(client: Client, { token, tokenExpiresAt, ...info }: SandboxInfo & Partial<NewToken>) {
    this.#client = client
    this.#info = info
    if (token && tokenExpiresAt) this.#token = { token, expiresAt: tokenExpiresAt }
    this.id = info.id
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
    this.#life = new Life(client, info.id)
    this.#previews = new Previews(client, info.id)
    this.#checkpoints = new SandboxCheckpoints(client, info.id)
  }

  get sandboxId(): string {
    return this.id
  }

  /** As last heard; `getInfo` asks. */
  get status(): SandboxStatus {
    return this.#info.status
  }

  /** Asks the server. It wakes nothing, and is no activity. `awake` says why it is awake, or when it will sleep. */
  async getInfo(options: Abortable = {}): Promise<SandboxDetail> {
    const detail = await this.#client.call('getSandbox', { params: { id: this.id }, ...options })
    this.#info = detail
    return detail
  }

  /** False also for one that does not exist. It wakes nothing, and is no activity. */
  async isRunning(options: Abortable = {}): Promise<boolean> {
    try {
      return (await this.getInfo(options)).status === 'running'
    } catch (error) {
      if (hasCode(error, 'sandbox_not_found')) return false
      throw error
    }
  }

  /** Everything inside stands still, and keeps its memory. `terminatesAt` says until when, if there is a timeout for that. */
  async pause(options: Abortable = {}): Promise<SandboxInfo> {
    this.#info = await this.#life.pause(options)
    return this.#info
  }

  /** One that is paused goes on. Whatever is asked of it does that too. */
  async resume(options: Abortable = {}): Promise<WokenSandbox> {
    return this.#woken(await this.#life.resume(options))
  }

  /** No CPU, and memory given back where the engine can; its files stay, also when the machine is started anew. */
  async hibernate(options: Abortable = {}): Promise<SandboxInfo> {
    this.#info = await this.#life.hibernate(options)
    return this.#info
  }

  /** One that is hibernated goes on. Whatever is asked of it does that too. */
  async wake(options: WakeOptions = {}): Promise<WokenSandbox> {
    return this.#woken(await this.#life.wake(options))
  }

  /** How long it may be idle: milliseconds or like '10m'; 0 is never. Or all that it does by itself; what is left out stays. */
  async setTimeout(timeout: number | string | Timeouts, options: Abortable = {}): Promise<SandboxInfo> {
    this.#info = await this.#life.setTimeout(timeout, options)
    return this.#info
  }

  #woken(woken: WokenSandbox): WokenSandbox {
    const { patches: _patches, ...info } = woken
    this.#info = info
    return woken
  }

  async update(patch: UpdateSandbox, options: Abortable = {}): Promise<SandboxInfo> {
    const params = { id: this.id }
    this.#info = await this.#client.call('updateSandbox', { params, body: patch, ...options })
    return this.#info
  }

  /** What it uses now. */
  usage(options: Abortable = {}): Promise<SandboxUsage> {
    return this.#client.call('sandboxUsage', { params: { id: this.id }, ...options })
  }

  /** What listens inside now. */
  async ports(options: Abortable = {}): Promise<ListeningPort[]> {
    return (await this.#client.call('listPorts', { params: { id: this.id }, ...options })).ports
  }

  /** The URL of a port, made if there is none. Something must listen there before it shows anything. */
  getUrl(port: UrlOfPort, options: Abortable = {}): Promise<string> {
    return this.#previews.urlOf(port, options)
  }

  /** Makes the URL of a port, or changes it: its domain, and whether a token is asked for. */
  createPreviewURL(preview: CreatePreview, options: Abortable = {}): Promise<Preview> {
    return this.#previews.create(preview, options)
  }

  listPreviewURLs(options: Abortable = {}): Promise<Preview[]> {
    return this.#previews.list(options)
  }

  /** Code `preview_not_found` if the port has none. */
  deletePreviewURL(port: number, options: Abortable = {}): Promise<void> {
    return this.#previews.remove(port, options)
  }

  /**
   * A token that reaches this sandbox alone and is good for a while yet, for a browser or another program. With
   * `expiresIn` (milliseconds or like '30m'), a new one that lives so long.
   */
  async getToken(options: { expiresIn?: number | string } & Abortable = {}): Promise<SandboxToken> {
    const { signal, expiresIn } = options
    const params = { id: this.id }
    if (expiresIn !== undefined)
      return this.#client.call('createToken', { params, body: { expiresIn }, signal })
    const known = (await this.#client.token(signal)) ?? this.#token
    if (known && !isDue(known.token)) return known
    this.#token = await this.#client.call('createToken', { params, body: {}, signal })
    return this.#token
  }

  /** Stops everything in it and removes all it holds. Of one that is gone: does nothing. */
  async kill(options: Abortable = {}): Promise<void> {
    try {
      this.#info = await this.#client.call('deleteSandbox', { params: { id: this.id }, ...options })
    } catch (error) {
      if (!hasCode(error, 'sandbox_not_found')) throw error
    }
  }

  /** Saves it as it is now: files, env, store and services. Code `conflict` when the name is taken. */
  createCheckpoint(checkpoint: string | { name: string }, options: Abortable = {}): Promise<CheckpointInfo> {
    const body = typeof checkpoint === 'string' ? { name: checkpoint } : checkpoint
    return this.#checkpoints.create(body, options)
  }

  /** Oldest first. */
  listCheckpoints(options: Abortable = {}): Promise<CheckpointInfo[]> {
    return this.#checkpoints.list(options)
  }

  /** The same sandbox as it was then. What runs in it is ended; its services are started again, and the answer says how that went. */
  async restoreCheckpoint(id: string, options: Abortable = {}): Promise<RestoredSandbox> {
    const restored = await this.#checkpoints.restore(id, options)
    this.#info = restored.sandbox
    return restored
  }

  deleteCheckpoint(id: string, options: Abortable = {}): Promise<void> {
    return this.#checkpoints.delete(id, options)
  }

  /** What became of the patches of the checkpoint that it was made from, in their order. */
  listPatches(options: Abortable = {}): Promise<PatchRun[]> {
    return listPatches(this.#client, this.id, options)
  }

  /** Publishes it as it is now as a base for new sandboxes, which outlives it: `create({ snapshot })`. */
  createSnapshot(options: SnapshotOptions = {}): Promise<SnapshotInfo> {
    return new Snapshots(this.#client).create({ sandbox: this.id }, options)
  }

  /**
   * A copy of it as it is now, with a token of its own. With `count`, so many of the same instant, and what became of
   * each of them.
   */
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

  /** Shell text; a failing command is a result with its exit code. */
  async runCommand(command: string, options: RunCommandOptions = {}): Promise<ExecResult> {
    const { background, ...rest } = options
    if (!background) return this.exec.run(command, rest)
    const { id, autoResumed } = await this.exec.spawn(command, rest)
    return { ...STARTED, processId: id, autoResumed }
  }

  /**
   * Python, JavaScript, TypeScript or shell, found out from the code where no language is given. Code that
   * fails is a result with its exit code.
   */
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
}

const STARTED = {
  exitCode: 0,
  signal: null,
  timedOut: false,
  oom: false,
  durationMs: 0,
  stdout: '',
  stderr: '',
  truncated: false,
  droppedBytes: 0,
}

/** The options of a static method are those of the client and its own. */
function serverOf<Options extends ClientOptions>(
  options: Options,
): [Islet, Omit<Options, keyof ClientOptions>] {
  const { url, apiKey, token, fetch, WebSocket, retries, ...rest } = options
  return [new Islet({ url, apiKey, token, fetch, WebSocket, retries }), rest]
}

guard(Sandbox, 'Sandbox', STATIC_CHECKS)
guard(Sandbox.prototype, 'sandbox', CHECKS)
