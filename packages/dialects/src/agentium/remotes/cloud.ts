// What our implementations of CloudSandbox share: checks, defaults and encodings.
import { IsletError } from '@islet/sdk'
import { checkEncoding, checkPath, checkRun, checkWrite } from '../checks.ts'
import { argvOf } from '../run/argv.ts'
import { aborted } from '../run/child.ts'
import {
  type CloudSandbox,
  DEFAULT_TIMEOUT_SECONDS,
  type FileEncoding,
  type SandboxRunOptions,
  type SandboxRunResult,
  type SandboxShellOptions,
} from '../types.ts'

export type Request = SandboxShellOptions & { timeoutSeconds: number }

export abstract class Cloud<Instance> implements CloudSandbox {
  abstract readonly providerId: string
  protected instance: Instance | undefined

  /** Does nothing if it is started. */
  async start(): Promise<void> {
    this.instance ??= await this.open()
  }

  async run(code: string, options: SandboxRunOptions = {}): Promise<SandboxRunResult> {
    checkRun('run', code, options)
    return this.#run(code, options)
  }

  async shell(command: string, options: SandboxShellOptions = {}): Promise<SandboxRunResult> {
    checkRun('shell', command, options)
    return this.#run(command, { ...options, language: 'shell' })
  }

  async writeFile(path: string, contents: string, encoding: FileEncoding = 'utf8'): Promise<void> {
    checkWrite(path, contents, encoding)
    await this.write(this.started(), path, Buffer.from(contents, encoding))
  }

  async readFile(path: string, encoding: FileEncoding = 'utf8'): Promise<string | null> {
    checkPath(path)
    checkEncoding(encoding)
    try {
      return Buffer.from(await this.read(this.started(), path)).toString(encoding)
    } catch (error) {
      if (this.isMissing(error)) return null
      throw error
    }
  }

  async close(): Promise<void> {
    const { instance } = this
    this.instance = undefined
    if (instance !== undefined) await this.end(instance)
  }

  protected abstract open(): Promise<Instance>
  protected abstract execute(instance: Instance, argv: string[], request: Request): Promise<SandboxRunResult>
  protected abstract write(instance: Instance, path: string, bytes: Uint8Array): Promise<void>
  protected abstract read(instance: Instance, path: string): Promise<Uint8Array>
  /** Whether a read failed because there is no such file. */
  protected abstract isMissing(error: unknown): boolean
  protected abstract end(instance: Instance): Promise<void>

  protected started(): Instance {
    if (this.instance !== undefined) return this.instance
    throw new IsletError('invalid_state', 'Sandbox not started', { hint: 'Call start() first.' })
  }

  async #run(
    code: string,
    { language = 'python', ...options }: SandboxRunOptions,
  ): Promise<SandboxRunResult> {
    const { signal, timeoutSeconds = DEFAULT_TIMEOUT_SECONDS } = options
    if (signal?.aborted) throw aborted(signal)
    return this.execute(this.started(), argvOf(code, language), { ...options, timeoutSeconds })
  }
}
