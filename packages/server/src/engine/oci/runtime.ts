// The OCI runtime, called through the warden. It stays only as long as it takes to start a shell: no shim, and its own record is removed
// as soon as the shell runs, because everything later goes through the warden.
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { open, readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { IsletError } from '@islet/contract'
import type { Warden, WardenOptions } from '../../warden/warden.ts'
import type { PrepareOptions } from '../engine.ts'

export type RuntimeName = 'runc' | 'crun'

const PROGRAM_DIRECTORIES = ['/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin']

export class Runtime {
  readonly #warden: Warden
  readonly #name: RuntimeName
  readonly #root: string

  constructor(warden: Warden, name: RuntimeName, runDir: string) {
    this.#warden = warden
    this.#name = name
    this.#root = runtimeRoot(runDir)
  }

  /** Starts the bundle in `directory`; answers with the pid of its first process. */
  async start(
    id: string,
    directory: string,
    uidBase: number,
    { background = false }: PrepareOptions,
  ): Promise<number> {
    try {
      await this.#warden.request('SHELL_START', { shell: id, uidBase, background: background ? 1 : 0 })
    } catch (error) {
      const reason = (await lastError(join(directory, 'runtime.log'))) ?? (error as Error).message
      throw new IsletError('engine_unavailable', `${this.#name} could not start a sandbox: ${reason}`, {
        cause: error,
      })
    }
    const pid = Number(await readFile(join(directory, 'pid'), 'utf8'))
    await this.forget(id)
    return pid
  }

  /** Removes the runtime's record of a container. */
  async forget(id: string): Promise<void> {
    await rm(join(this.#root, id), { recursive: true, force: true })
  }

  /** The containers of which there is a record: a start that was cut off. */
  list(): Promise<string[]> {
    return readdir(this.#root).catch(() => [])
  }
}

/** What the warden must be started with to start shells. */
export function shellOptions(name: RuntimeName, runDir: string): WardenOptions['shells'] {
  const runtime = findProgram(name)
  if (!runtime)
    throw new IsletError('engine_unavailable', `${name} is not installed.`, {
      hint: 'islet setup installs it.',
    })
  return { directory: join(runDir, 's'), runtime, runtimeRoot: runtimeRoot(runDir) }
}

/** Where a program of this name is, among the usual places. */
export function findProgram(name: string): string | undefined {
  return PROGRAM_DIRECTORIES.map((directory) => join(directory, name)).find(existsSync)
}

function runtimeRoot(runDir: string): string {
  return join(runDir, 'runc')
}

export async function runtimeVersion(name: RuntimeName | 'runsc'): Promise<string | undefined> {
  try {
    const { stdout } = await promisify(execFile)(name, ['--version'])
    return /version (\S+)/.exec(stdout)?.[1]
  } catch {
    return undefined
  }
}

/** Of a log that a hostile sandbox may have a hand in. */
const TAIL_BYTES = 64 * 1024

/** The first line of the last thing a runtime logged. */
export async function lastError(log: string): Promise<string | undefined> {
  const text = await tail(log).catch(() => '')
  const literals = text.split('\n').flatMap((line) => /"msg":("(?:[^"\\]|\\.)*")/.exec(line)?.[1] ?? [])
  const last = literals.at(-1)
  return last === undefined ? undefined : parsed(last)?.split('\n')[0]
}

async function tail(path: string): Promise<string> {
  const file = await open(path)
  try {
    const { size } = await file.stat()
    const { buffer, bytesRead } = await file.read({
      buffer: Buffer.alloc(TAIL_BYTES),
      position: Math.max(0, size - TAIL_BYTES),
    })
    return buffer.toString('utf8', 0, bytesRead)
  } finally {
    await file.close()
  }
}

/** A literal may hold what is no JSON. */
function parsed(literal: string): string | undefined {
  try {
    return String(JSON.parse(literal))
  } catch {
    return undefined
  }
}
