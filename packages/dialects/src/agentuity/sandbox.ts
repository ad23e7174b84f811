import { type FileEntry, hasCode, IsletError, type OutputOfRun, type Sandbox } from '@islet/sdk'
import { type Execution, type SandboxInfo, type SandboxStatus, statusOf, streamUrls, toInfo } from './info.ts'
import { type FileToWrite, type StreamConfig, wantsUrls } from './options.ts'

export interface ExecuteOptions {
  command: string[]
  /** Written before the command starts. */
  files?: FileToWrite[]
  /** `'30s'`. Default: the execution timeout of the sandbox. */
  timeout?: string
  stream?: StreamConfig
  /** Where output goes as it comes. */
  pipe?: { stdout?: OutputOfRun['stdout']; stderr?: OutputOfRun['stderr'] }
  /** Aborting kills the command and rejects with a DOMException named AbortError. */
  signal?: AbortSignal
}

export interface SandboxFileInfo {
  /** Relative to the listed directory. */
  path: string
  size: number
  isDir: boolean
  isSymlink: boolean
  linkTarget?: string
  mode: string
  modTime: string
}

export interface SandboxPauseResult {
  sandboxId: string
  status: SandboxStatus
  /** Set if the sandbox has a paused timeout. */
  terminatesAt?: string
}

/** At most this many commands are counted. */
const COUNTED = 1000

/** A sandbox for several commands. */
export class SandboxInstance {
  readonly id: string
  /** For the client. */
  readonly inner: Sandbox

  constructor(inner: Sandbox) {
    this.inner = inner
    this.id = inner.id
  }

  /** As of the last answer; `get` asks again. */
  get status(): SandboxStatus {
    return statusOf({ status: this.inner.status })
  }

  /** Runs a command to its end. A command that fails, or runs into its timeout, resolves too. */
  async execute(options: ExecuteOptions): Promise<Execution> {
    const { command, stream, pipe, ...rest } = options
    const wanted = wantsUrls(stream)
    const result = await this.inner.exec.run(command, { ...rest, ...pipe })
    return {
      executionId: result.processId,
      status: result.outcome,
      exitCode: result.exitCode,
      durationMs: result.durationMs,
      ...(await streamUrls(this.inner, result.processId, wanted)),
      outputTruncated: result.truncated,
      autoResumed: result.autoResumed,
    }
  }

  /** Answers how many files were written. */
  async writeFiles(files: FileToWrite[]): Promise<number> {
    for (const { path, content } of files) await this.inner.files.write(path, content)
    return files.length
  }

  readFile(path: string): Promise<ReadableStream<Uint8Array>> {
    return this.inner.files.readStream(path)
  }

  async listFiles(path?: string): Promise<SandboxFileInfo[]> {
    return (await this.inner.files.list(path)).map(toFileInfo)
  }

  async mkDir(path: string, recursive = false): Promise<void> {
    await this.inner.files.makeDir(path, { parents: recursive })
  }

  rmFile(path: string): Promise<{ found: boolean }> {
    return this.#remove(path, { isDirectory: false })
  }

  rmDir(path: string, recursive = false): Promise<{ found: boolean }> {
    return this.#remove(path, { isDirectory: true, recursive })
  }

  /** null deletes a variable. Answers all variables. Commands that run already do not see it. */
  async setEnv(env: Record<string, string | null>): Promise<Record<string, string>> {
    return (await this.inner.update({ env })).env
  }

  async get(): Promise<SandboxInfo> {
    const [record, executed] = await Promise.all([
      this.inner.getInfo(),
      this.inner.exec.list({ kind: 'command', limit: COUNTED }),
    ])
    return toInfo(record, executed.length)
  }

  /** Keeps files and memory and stops everything inside, until `resume` or the next call that needs it. */
  async pause(): Promise<SandboxPauseResult> {
    const paused = await this.inner.pause()
    return {
      sandboxId: this.id,
      status: statusOf(paused),
      ...(paused.terminatesAt !== null && { terminatesAt: paused.terminatesAt }),
    }
  }

  async resume(): Promise<void> {
    await this.inner.resume()
  }

  destroy(): Promise<void> {
    return this.inner.kill()
  }

  async #remove(
    path: string,
    { isDirectory, recursive }: { isDirectory: boolean; recursive?: boolean },
  ): Promise<{ found: boolean }> {
    try {
      const { type } = await this.inner.files.stat(path, { follow: false })
      if (isDirectory !== (type === 'directory'))
        throw isDirectory
          ? new IsletError('not_a_directory', `${path} is not a directory.`, { hint: 'Use rmFile.' })
          : new IsletError('is_a_directory', `${path} is a directory.`, { hint: 'Use rmDir.' })
      await this.inner.files.remove(path, { recursive })
      return { found: true }
    } catch (error) {
      if (hasCode(error, 'file_not_found')) return { found: false }
      throw error
    }
  }
}

function toFileInfo({ name, sizeBytes, type, target, mode, modifiedAt }: FileEntry): SandboxFileInfo {
  return {
    path: name,
    size: sizeBytes,
    isDir: type === 'directory',
    isSymlink: type === 'symlink',
    ...(target !== undefined && { linkTarget: target }),
    mode,
    modTime: modifiedAt,
  }
}
