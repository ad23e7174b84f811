import { IsletError } from '@islet/sdk'
import {
  checkConfig,
  checkEncoding,
  checkedSnapshotOptions,
  checkPath,
  checkRun,
  checkWrite,
} from './checks.ts'
import { checkSnapshot, snapshotOf } from './snapshot.ts'
import {
  DEFAULT_IMAGE,
  DEFAULT_TIMEOUT_SECONDS,
  type FileEncoding,
  type SandboxAgentConfig,
  type SandboxRunOptions,
  type SandboxRunResult,
  type SandboxShellOptions,
  type SnapshotOptions,
  type WorkspaceSnapshot,
} from './types.ts'
import { Docker } from './workspaces/docker.ts'
import { Remote } from './workspaces/remote.ts'
import { UnixLocal } from './workspaces/unix-local.ts'
import type { Workspace } from './workspaces/workspace.ts'

/** A workspace, files and a shell, that stays between runs. `close` removes it; a snapshot brings it back. */
export class SandboxAgent implements AsyncDisposable {
  readonly kind = 'sandbox-agent'
  readonly #config: SandboxAgentConfig
  #env: Record<string, string>
  #workspace: Workspace | undefined
  #turn: Promise<unknown> = Promise.resolve()

  constructor(config: SandboxAgentConfig = {}) {
    checkConfig(config)
    this.#config = config
    this.#env = { ...config.workspace?.env }
  }

  /** True from the end of `start` to the call of `close`. */
  get ready(): boolean {
    return this.#workspace !== undefined
  }

  /** Makes the workspace, writes its files and clones its repositories. Does nothing if that is done. */
  start(): Promise<void> {
    return this.#inTurn(async () => {
      if (this.#workspace) return
      const { files = [], gitClones = [] } = this.#config.workspace ?? {}
      this.#workspace = await this.#open(async (workspace) => {
        for (const { path, contents, encoding } of files)
          await workspace.writeFile(path, contents, encoding ?? 'utf8')
        for (const clone of gitClones) await workspace.clone(clone, this.#env)
      })
    })
  }

  /** Runs code to its end. Code that fails is a result with its exit code. */
  async run(code: string, options: SandboxRunOptions = {}): Promise<SandboxRunResult> {
    checkRun('run', code, options)
    return this.#run(code, options)
  }

  /** The same as `run` with the language shell. */
  async shell(command: string, options: SandboxShellOptions = {}): Promise<SandboxRunResult> {
    checkRun('shell', command, options)
    return this.#run(command, { ...options, language: 'shell' })
  }

  /** Makes missing directories. */
  async writeFile(path: string, contents: string, encoding: FileEncoding = 'utf8'): Promise<void> {
    checkWrite(path, contents, encoding)
    await this.#started().writeFile(path, contents, encoding)
  }

  /** Null if there is no such file; any other failure is an error. */
  async readFile(path: string, encoding: FileEncoding = 'utf8'): Promise<string | null> {
    checkPath(path)
    checkEncoding(encoding)
    return this.#started().readFile(path, encoding)
  }

  /** All files and variables, as plain JSON. */
  async snapshot(options: SnapshotOptions = {}): Promise<WorkspaceSnapshot> {
    const checked = checkedSnapshotOptions(options)
    return snapshotOf(await this.#started().capture(checked), this.#env)
  }

  /**
   * Starts a workspace with the files and variables of a snapshot. A workspace that was started before is closed. The files and
   * repositories of the constructor are not added: the snapshot has what became of them.
   */
  resume(snapshot: WorkspaceSnapshot): Promise<void> {
    return this.#inTurn(async () => {
      checkSnapshot(snapshot)
      // A remote is one computer: it must end before it can start again.
      if (this.#config.backend === 'remote') await this.#end()
      const { files, env, snapshotId } = snapshot
      const next = await this.#open((workspace) => workspace.restore(files), snapshotId)
      await this.#end()
      this.#workspace = next
      this.#env = { ...env }
    })
  }

  /** Ends what runs in the workspace and removes it. Does nothing the second time. */
  close(): Promise<void> {
    return this.#inTurn(() => this.#end())
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  #run(code: string, options: SandboxRunOptions): Promise<SandboxRunResult> {
    const { language = 'node', timeoutSeconds = DEFAULT_TIMEOUT_SECONDS, env, ...rest } = options
    return this.#started().run(code, { language, timeoutSeconds, env: { ...this.#env, ...env }, ...rest })
  }

  /** A workspace that could not be filled is removed. */
  async #open(fill: (workspace: Workspace) => Promise<void>, snapshotId?: string): Promise<Workspace> {
    const workspace = await this.#make(snapshotId)
    try {
      await fill(workspace)
      return workspace
    } catch (error) {
      await workspace.close().catch(() => {})
      throw error
    }
  }

  #make(snapshotId: string | undefined): Promise<Workspace> {
    const { backend = 'unix-local', remote, dockerImage = DEFAULT_IMAGE } = this.#config
    if (backend === 'remote') return Remote.open(remote, snapshotId)
    if (snapshotId !== undefined)
      throw new IsletError(
        'not_supported',
        `The snapshot ${snapshotId} is kept by a remote, not by ${backend}.`,
        {
          hint: 'Resume it with the backend remote and the same kind of remote.',
        },
      )
    return backend === 'docker' ? Docker.open(dockerImage) : UnixLocal.open()
  }

  async #end(): Promise<void> {
    const workspace = this.#workspace
    this.#workspace = undefined
    await workspace?.close()
  }

  #started(): Workspace {
    if (this.#workspace) return this.#workspace
    throw new IsletError('invalid_state', 'Sandbox not started', { hint: 'Call start() or resume() first.' })
  }

  /** start, resume and close never overlap. */
  #inTurn(work: () => Promise<void>): Promise<void> {
    const done = this.#turn.then(work)
    this.#turn = done.catch(() => {})
    return done
  }
}
