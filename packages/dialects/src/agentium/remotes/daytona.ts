// A Daytona sandbox as a CloudSandbox, through the vendor's package `@daytonaio/sdk`.
import { posix } from 'node:path'
import { IsletError, type Names, refuseUnknown } from '@islet/sdk'
import { load } from '../load.ts'
import { quoted } from '../run/argv.ts'
import { Output } from '../run/output.ts'
import type { SandboxRunResult } from '../types.ts'
import { Cloud, type Request } from './cloud.ts'

export interface DaytonaSandboxOptions {
  /** Default: the variable DAYTONA_API_KEY. */
  apiKey?: string
  /** The address of the API. Default: the variable DAYTONA_API_URL, else the vendor's. */
  baseURL?: string
  /** The id or name of an existing sandbox to use. `close` leaves it as it is. */
  workspace?: string
}

/** The part of the package that is used. */
export interface DaytonaModule {
  Daytona: new (options: {
    apiKey?: string
    apiUrl?: string
  }) => {
    create(): Promise<DaytonaInstance>
    get(idOrName: string): Promise<DaytonaInstance>
  }
}

export interface DaytonaInstance {
  process: {
    executeCommand(
      command: string,
      cwd?: string,
      env?: Record<string, string>,
      timeoutSeconds?: number,
    ): Promise<{ exitCode: number; result: string }>
  }
  fs: {
    createFolder(path: string, mode: string): Promise<void>
    uploadFile(file: Uint8Array, path: string): Promise<void>
    downloadFile(path: string): Promise<Uint8Array>
  }
  delete(): Promise<unknown>
}

const NAMES: Names<DaytonaSandboxOptions> = { apiKey: 1, baseURL: 1, workspace: 1 }

export class DaytonaSandbox extends Cloud<DaytonaInstance> {
  readonly providerId = 'daytona'
  readonly #options: DaytonaSandboxOptions

  constructor(options: DaytonaSandboxOptions = {}) {
    super()
    refuseUnknown('DaytonaSandbox', options, NAMES)
    this.#options = options
  }

  protected async open(): Promise<DaytonaInstance> {
    const { apiKey, baseURL, workspace } = this.#options
    const { Daytona } = await load<DaytonaModule>(['@daytonaio/sdk'], 'DaytonaSandbox')
    const client = new Daytona({ apiKey, apiUrl: baseURL })
    return workspace === undefined ? client.create() : client.get(workspace)
  }

  /** The vendor returns stdout and stderr as one text, which is `stdout` here, and nothing of a run that timed out. */
  protected async execute(
    { process }: DaytonaInstance,
    argv: string[],
    { env, cwd, signal, timeoutSeconds }: Request,
  ): Promise<SandboxRunResult> {
    if (signal)
      throw new IsletError('not_supported', 'A run in a Daytona sandbox cannot be aborted.', {
        hint: 'Leave signal out, and use timeoutSeconds.',
      })
    const output = new Output()
    try {
      const seconds = Math.ceil(timeoutSeconds)
      const { exitCode, result } = await process.executeCommand(quoted(argv), cwd, env, seconds)
      output.add('stdout', Buffer.from(result))
      return output.result(exitCode, false)
    } catch (error) {
      if (isNamed(error, /Timeout/)) return output.result(0, true)
      throw error
    }
  }

  protected async write({ fs }: DaytonaInstance, path: string, bytes: Uint8Array): Promise<void> {
    const parent = posix.dirname(path)
    if (parent !== '.' && parent !== '/') await fs.createFolder(parent, '755')
    await fs.uploadFile(Buffer.from(bytes), path)
  }

  protected read({ fs }: DaytonaInstance, path: string): Promise<Uint8Array> {
    return fs.downloadFile(path)
  }

  protected isMissing(error: unknown): boolean {
    return isNamed(error, /NotFound/)
  }

  protected async end(sandbox: DaytonaInstance): Promise<void> {
    if (this.#options.workspace === undefined) await sandbox.delete()
  }
}

function isNamed(error: unknown, pattern: RegExp): boolean {
  return error instanceof Error && pattern.test(`${error.name} ${error.constructor.name}`)
}
