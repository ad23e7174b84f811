// The OCI runtime, called through the warden. It stays only as long as it takes to start a cell: no shim, and its own record is removed
// as soon as the cell runs, because everything later goes through the warden.
import { execFile } from 'node:child_process'
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { open, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { IsletError } from '@islet/contract'
import type { CellStartFields } from '../../warden/messages.gen.ts'
import type { Warden, WardenOptions } from '../../warden/warden.ts'

export type RuntimeName = 'runc' | 'crun'

/** The suite passes with it. */
const OLDEST_CRUN = [1, 8] as const

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
  async start(directory: string, request: CellStartFields & { cell: string }): Promise<number> {
    try {
      await this.#warden.request('CELL_START', request)
    } catch (error) {
      const reason = (await lastError(join(directory, 'runtime.log'))) ?? (error as Error).message
      throw new IsletError('engine_unavailable', `${this.#name} could not start a sandbox: ${reason}`, {
        cause: error,
      })
    }
    const pid = Number(readFileSync(join(directory, 'pid'), 'utf8'))
    this.forget(request.cell)
    return pid
  }

  /** Removes the runtime's record of a container. */
  forget(id: string): void {
    rmSync(join(this.#root, id), { recursive: true, force: true })
  }

  /** The containers of which there is a record: a start that was cut off. */
  list(): Promise<string[]> {
    return readdir(this.#root).catch(() => [])
  }
}

/** crun takes a fifth of the processor time of runc to start a cell. One that was built without what walls need is not taken. */
export async function chooseRuntime(wanted: RuntimeName | 'auto'): Promise<RuntimeName> {
  if (wanted !== 'auto') return wanted
  const program = findProgram('crun')
  const { stdout } = await promisify(execFile)(program ?? 'false', ['--version']).catch(() => ({
    stdout: '',
  }))
  const [, major = 0, minor = 0] = /version (\d+)\.(\d+)/.exec(stdout)?.map(Number) ?? []
  const isNew = major > OLDEST_CRUN[0] || (major === OLDEST_CRUN[0] && minor >= OLDEST_CRUN[1])
  return isNew && /\+SECCOMP\b/.test(stdout) && /\+CAP\b/.test(stdout) ? 'crun' : 'runc'
}

/** What the warden must be started with to start cells. */
export function cellOptions(name: RuntimeName, runDir: string): WardenOptions['cells'] {
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
