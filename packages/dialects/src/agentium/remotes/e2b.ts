// An E2B sandbox as a CloudSandbox, through the vendor's package `e2b` (or `@e2b/code-interpreter`, which contains it).
import { randomUUID } from 'node:crypto'
import { type Names, refuseUnknown } from '@islet/sdk'
import { load } from '../load.ts'
import { quoted } from '../run/argv.ts'
import { aborted } from '../run/child.ts'
import { MARK } from '../run/descendants.ts'
import { killScript } from '../run/kill-script.ts'
import { Output } from '../run/output.ts'
import type { SandboxRunResult } from '../types.ts'
import { Cloud, type Request } from './cloud.ts'

export interface E2BSandboxOptions {
  /** Default: the variable E2B_API_KEY. */
  apiKey?: string
  /** Default: base. */
  template?: string
}

/** The part of the package that is used. */
export interface E2BModule {
  Sandbox: { create(template: string, options: { apiKey?: string }): Promise<E2BInstance> }
}

export interface E2BInstance {
  commands: {
    run(
      command: string,
      options: {
        background: true
        envs?: Record<string, string>
        cwd?: string
        timeoutMs: number
        onStdout?(text: string): void
        onStderr?(text: string): void
      },
    ): Promise<{ wait(): Promise<{ exitCode: number }>; kill(): Promise<boolean> }>
  }
  files: {
    write(path: string, data: ArrayBuffer): Promise<unknown>
    read(path: string, options: { format: 'bytes' }): Promise<Uint8Array>
  }
  kill(): Promise<unknown>
}

const NAMES: Names<E2BSandboxOptions> = { apiKey: 1, template: 1 }
const KILL_MS = 20_000

export class E2BSandbox extends Cloud<E2BInstance> {
  readonly providerId = 'e2b'
  readonly #options: E2BSandboxOptions

  constructor(options: E2BSandboxOptions = {}) {
    super()
    refuseUnknown('E2BSandbox', options, NAMES)
    this.#options = options
  }

  protected async open(): Promise<E2BInstance> {
    const { template = 'base', ...rest } = this.#options
    const { Sandbox } = await load<E2BModule>(['e2b', '@e2b/code-interpreter'], 'E2BSandbox')
    return Sandbox.create(template, rest)
  }

  protected async execute(
    { commands }: E2BInstance,
    argv: string[],
    { env, cwd, signal, timeoutSeconds }: Request,
  ): Promise<SandboxRunResult> {
    const output = new Output()
    const mark = randomUUID()
    // `exit` keeps the shell, which turns a death by a signal into an exit code.
    const command = await commands.run(`${quoted(argv)}; exit $?`, {
      background: true,
      envs: { ...env, [MARK]: mark },
      cwd,
      // No limit of the client: it would end the connection and lose what was printed.
      timeoutMs: 0,
      onStdout: (text) => output.add('stdout', Buffer.from(text)),
      onStderr: (text) => output.add('stderr', Buffer.from(text)),
    })
    let timedOut = false
    const stop = () => {
      const script = quoted(killScript(mark, { hasSession: false }))
      const killed = commands
        .run(script, { background: true, timeoutMs: KILL_MS })
        .then((kill) => kill.wait())
      killed.catch(() => command.kill()).catch(() => {})
    }
    const timer = setTimeout(() => {
      timedOut = true
      stop()
    }, timeoutSeconds * 1000)
    signal?.addEventListener('abort', stop, { once: true })
    try {
      const exitCode = await command.wait().then((result) => result.exitCode, exitCodeOf)
      if (signal?.aborted) throw aborted(signal)
      return output.result(exitCode, timedOut)
    } finally {
      clearTimeout(timer)
      signal?.removeEventListener('abort', stop)
    }
  }

  protected async write({ files }: E2BInstance, path: string, bytes: Uint8Array): Promise<void> {
    await files.write(path, new Uint8Array(bytes).buffer)
  }

  protected read({ files }: E2BInstance, path: string): Promise<Uint8Array> {
    return files.read(path, { format: 'bytes' })
  }

  protected isMissing(error: unknown): boolean {
    return error instanceof Error && /^(File)?NotFoundError$/.test(error.name)
  }

  protected async end(sandbox: E2BInstance): Promise<void> {
    await sandbox.kill()
  }
}

/** The client throws for a command that fails; here that is a result. */
function exitCodeOf(error: unknown): number {
  const { exitCode } = error as { exitCode?: unknown }
  if (typeof exitCode === 'number') return exitCode
  throw error
}
