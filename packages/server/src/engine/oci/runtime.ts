// Calls the OCI runtime. It stays only as long as it takes to start a shell: no shim, and its own record is removed
// as soon as the shell runs, because everything later goes through the warden.
import { execFile, spawn } from 'node:child_process'
import { readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { IsletError } from '@islet/contract'

export type RuntimeName = 'runc' | 'crun'

// A start takes some 40 ms; a machine that needs this long is not going to make it.
const START_TIMEOUT_MS = 30_000

export class Runtime {
  readonly name: RuntimeName
  readonly #root: string

  constructor(name: RuntimeName, runDir: string) {
    this.name = name
    this.#root = join(runDir, 'runc')
  }

  /** Starts the bundle in `directory`; answers with the pid of its first process. */
  async start(id: string, directory: string): Promise<number> {
    const pidFile = join(directory, 'pid')
    const log = join(directory, 'runtime.log')
    const args = ['--root', this.#root, '--log', log, '--log-format', 'json']
    // /dev/null, not a file of ours: root inside can write to what its first process has open.
    const child = spawn(
      this.name,
      [...args, 'run', '--detach', '--bundle', directory, '--pid-file', pidFile, id],
      {
        stdio: 'ignore',
        timeout: START_TIMEOUT_MS,
        killSignal: 'SIGKILL',
      },
    )
    const { promise, resolve, reject } = Promise.withResolvers<number | null>()
    child.once('error', reject).once('exit', resolve)
    const code = await promise.catch((cause) => {
      throw new IsletError('engine_unavailable', `${this.name} could not be executed: ${cause.message}.`, {
        cause,
      })
    })
    if (code !== 0) {
      throw new IsletError(
        'engine_unavailable',
        `${this.name} could not start a sandbox: ${await lastError(log, code)}`,
      )
    }
    const pid = Number(await readFile(pidFile, 'utf8'))
    await this.forget(id)
    return pid
  }

  /** Removes the runtime's record of a container. */
  async forget(id: string): Promise<void> {
    await rm(join(this.#root, id), { recursive: true, force: true })
  }

  async forgetAll(): Promise<void> {
    await rm(this.#root, { recursive: true, force: true })
  }
}

export async function runtimeVersion(name: RuntimeName): Promise<string | undefined> {
  try {
    const { stdout } = await promisify(execFile)(name, ['--version'])
    return /version (\S+)/.exec(stdout)?.[1]
  } catch {
    return undefined
  }
}

async function lastError(log: string, code: number | null): Promise<string> {
  const text = await readFile(log, 'utf8').catch(() => '')
  const messages = text.split('\n').flatMap((line) => /"msg":"((?:[^"\\]|\\.)*)"/.exec(line)?.[1] ?? [])
  return (
    messages.at(-1)?.replace(/\\(.)/g, '$1') ??
    (code === null ? 'it took too long' : `it exited with ${code}`)
  )
}
