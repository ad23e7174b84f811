// The half that unix-local and docker share: a directory of this machine, made for one workspace.
import { randomUUID } from 'node:crypto'
import { mkdtemp, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { hasCode, IsletError } from '@islet/sdk'
import { capture, restore } from '../files/capture.ts'
import { Confined } from '../files/confined.ts'
import { readBytes, writeBytes } from '../files/content.ts'
import { cloneWith } from '../git.ts'
import { cleanEnv, runProgram } from '../run/child.ts'
import { killAll } from '../run/descendants.ts'
import type { FileEncoding, GitClone, SandboxRunResult, SnapshotFile, SnapshotOptions } from '../types.ts'
import type { Captured, RunRequest, Workspace } from './workspace.ts'

export abstract class OnDisk implements Workspace {
  protected readonly files: Confined
  readonly #mark = randomUUID()
  #runs = 0
  #isClosed = false

  static async makeDirectory(): Promise<string> {
    if (process.platform === 'win32')
      throw new IsletError('not_supported', 'This backend does not run on Windows. Use the backend remote.')
    // Mode 0700: other users of the machine do not reach what is in it.
    return await mkdtemp(join(await realpath(tmpdir()), 'agentium-'))
  }

  constructor(directory: string, aliases: readonly string[] = []) {
    this.files = new Confined(directory, aliases)
  }

  abstract run(code: string, request: RunRequest): Promise<SandboxRunResult>

  writeFile(path: string, contents: string, encoding: FileEncoding): Promise<void> {
    return writeBytes(this.files, path, Buffer.from(contents, encoding))
  }

  async readFile(path: string, encoding: FileEncoding): Promise<string | null> {
    try {
      return (await readBytes(this.files, path)).toString(encoding)
    } catch (error) {
      if (hasCode(error, 'file_not_found')) return null
      throw error
    }
  }

  /** Runs git of this machine: the image of a container need not have it. */
  async clone(clone: GitClone, env: Record<string, string>): Promise<void> {
    await using directory = await this.files.directory(clone.path, { make: true })
    await cloneWith(clone, (argv, plan) =>
      runProgram({
        argv,
        cwd: directory.path,
        env: { ...cleanEnv(), ...env, ...plan.env },
        timeoutSeconds: plan.timeoutSeconds,
        mark: this.nextMark(),
      }),
    )
  }

  async capture(options: Required<SnapshotOptions>): Promise<Captured> {
    return { files: await capture(this.files, options) }
  }

  restore(files: readonly SnapshotFile[]): Promise<void> {
    return restore(this.files, files)
  }

  /** Ends what runs on this machine and removes the directory. */
  async close(): Promise<void> {
    this.#isClosed = true
    killAll({ mark: `${this.#mark}/` })
    await removeTree(this.files.root)
  }

  protected checkOpen(): void {
    if (this.#isClosed) throw new IsletError('invalid_state', 'The workspace was closed meanwhile.')
  }

  protected nextMark(): string {
    return `${this.#mark}/${this.#runs++}/`
  }
}

export async function removeTree(root: string): Promise<void> {
  const remove = () => rm(root, { recursive: true, force: true, maxRetries: 3 })
  await remove().catch(async () => {
    // A directory without the permission to change it. chmod -R follows no symlinks in the tree.
    const argv = ['chmod', '-R', 'u+rwX', '--', root]
    await runProgram({ argv, cwd: '/', env: cleanEnv(), timeoutSeconds: 60, mark: randomUUID() })
    await remove()
  })
}
