// A workspace of a CloudSandbox. What its interface does not have, such as modes and symlinks, is done by the shell there.
import { IsletError } from '@islet/sdk'
import { bad } from '../checks.ts'
import { cloneWith } from '../git.ts'
import { quoted } from '../run/argv.ts'
import type {
  CloudSandbox,
  FileEncoding,
  GitClone,
  SandboxRunResult,
  SnapshotFile,
  SnapshotOptions,
} from '../types.ts'
import type { Captured, RunRequest, Workspace } from './workspace.ts'

const METHODS = ['start', 'run', 'writeFile', 'readFile', 'close'] as const
const SETUP_SECONDS = 60
/** Of shell text in one run. */
const SCRIPT_CHARS = 16 * 1024

export class Remote implements Workspace {
  readonly #remote: CloudSandbox

  /** Starts it from a snapshot that it keeps, or empty. */
  static async open(remote: CloudSandbox | undefined, snapshotId?: string): Promise<Remote> {
    if (!remote)
      throw bad('remote is required for the backend remote.', 'Give an object like isletSandbox().')
    for (const method of METHODS)
      if (typeof remote[method] !== 'function') throw bad(`remote has no method ${method}.`)
    if (snapshotId === undefined) await remote.start()
    else if (remote.resume) await remote.resume(snapshotId)
    else throw new IsletError('not_supported', 'This remote cannot start from the id of a snapshot.')
    return new Remote(remote)
  }

  private constructor(remote: CloudSandbox) {
    this.#remote = remote
  }

  run(code: string, { language, ...options }: RunRequest): Promise<SandboxRunResult> {
    if (language === 'shell' && this.#remote.shell) return this.#remote.shell(code, options)
    return this.#remote.run(code, { language, ...options })
  }

  writeFile(path: string, contents: string, encoding: FileEncoding): Promise<void> {
    return this.#remote.writeFile(path, contents, encoding)
  }

  readFile(path: string, encoding: FileEncoding): Promise<string | null> {
    return this.#remote.readFile(path, encoding)
  }

  async clone(clone: GitClone, env: Record<string, string>): Promise<void> {
    await this.#shell(`mkdir -p -- ${quoted([clone.path])}`)
    await cloneWith(clone, (argv, plan) =>
      this.run(`cd -- ${quoted([clone.path])} && ${quoted(argv)}`, {
        language: 'shell',
        env: { ...env, ...plan.env },
        timeoutSeconds: plan.timeoutSeconds,
      }),
    )
  }

  /** A remote without `snapshot` keeps its files: the document promises an empty list. */
  async capture(options: Required<SnapshotOptions>): Promise<Captured> {
    return (await this.#remote.snapshot?.(options)) ?? { files: [] }
  }

  async restore(files: readonly SnapshotFile[]): Promise<void> {
    const of = (wanted: SnapshotFile['type']) => files.filter(({ type = 'file' }) => type === wanted)
    await this.#lines(of('directory').map(({ path }) => `mkdir -p -- ${quoted([path])}`))
    for (const { path, contents, encoding } of of('file'))
      await this.writeFile(path, contents, encoding ?? 'utf8')
    await this.#lines(of('symlink').map(linkLine))
    const modes = [...of('file'), ...of('directory')].filter(({ mode }) => mode !== undefined)
    modes.sort((a, b) => b.path.length - a.path.length)
    await this.#lines(modes.map(({ path, mode }) => `chmod ${mode!.toString(8)} -- ${quoted([path])}`))
  }

  close(): Promise<void> {
    return this.#remote.close()
  }

  async #lines(lines: readonly string[]): Promise<void> {
    let script = ''
    for (const line of lines) {
      if (script.length + line.length > SCRIPT_CHARS) {
        await this.#shell(script)
        script = ''
      }
      script += `${line} || exit\n`
    }
    if (script !== '') await this.#shell(script)
  }

  async #shell(script: string): Promise<void> {
    const { exitCode, output } = await this.run(script, {
      language: 'shell',
      env: {},
      timeoutSeconds: SETUP_SECONDS,
    })
    if (exitCode !== 0)
      throw new IsletError('io_error', `The remote could not prepare its files: ${output.slice(-1000)}`)
  }
}

function linkLine({ path, target }: SnapshotFile): string {
  const parent = path.slice(0, Math.max(0, path.lastIndexOf('/')))
  const make = parent === '' ? '' : `mkdir -p -- ${quoted([parent])} && `
  return `${make}ln -sfn -- ${quoted([target!, path])}`
}
