// The real link, with a method that runs a command to its end.
import { randomUUID } from 'node:crypto'
import { rm } from 'node:fs/promises'
import { type Link, listenLink } from '../../guest/link.ts'

export interface Result {
  code: number
  signal: number
  timedOut: boolean
  /** stdout and stderr in the order they arrived. */
  output: string
}

export interface RunOptions {
  user?: string
  cwd?: string
  timeoutMs?: number
}

const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'

export class TestLink {
  readonly #link: Link

  private constructor(link: Link) {
    this.#link = link
  }

  static async listen(socketPath: string): Promise<TestLink> {
    await rm(socketPath, { force: true })
    return new TestLink(await listenLink({ socketPath }))
  }

  get bootId(): string {
    return this.#link.bootId
  }

  /** Resolves once the guest is connected. */
  ready(): Promise<void> {
    return this.#link.ready({ timeoutMs: 20_000 })
  }

  suspend(): Promise<void> {
    return this.#link.suspend()
  }

  resume(socketPath: string): Promise<void> {
    return this.#link.resume(socketPath)
  }

  close(): Promise<void> {
    return this.#link.close()
  }

  killAll(): Promise<void> {
    return this.#link.killAll()
  }

  async setup(files: readonly { path: string; content: string }[]): Promise<void> {
    await this.#link.setup(files.map((file) => ({ ...file, mode: 0o644 })))
  }

  /** Runs a shell script, or an argv, to its end. */
  async run(command: string | readonly string[], options: RunOptions = {}): Promise<Result> {
    const { user = '', cwd = '/', timeoutMs = 60_000 } = options
    const argv = typeof command === 'string' ? ['/bin/sh', '-c', command] : command
    const chunks: Buffer[] = []
    const process = await this.#link.spawn(
      { id: `prc-${randomUUID()}`, argv, env: { PATH }, cwd, user, timeoutMs, stdin: false },
      { write: (_channel, bytes) => void chunks.push(Buffer.from(bytes)) },
    )
    const { code, signal, timedOut } = await process.exited
    process.forget()
    return { code, signal, timedOut, output: Buffer.concat(chunks).toString() }
  }

  /** The output of `run`, which must succeed. */
  async print(command: string | readonly string[], options?: RunOptions): Promise<string> {
    const { code, signal, output } = await this.run(command, options)
    if (code !== 0 || signal !== 0) throw new Error(`exit ${code}, signal ${signal}: ${output}`)
    return output.trim()
  }
}
