// The OCI runtime, called through the warden. It runs only while it starts a cell: there is no shim, and its own record of the
// cell is removed as soon as the cell runs, because everything later goes through the warden.
import { execFile } from 'node:child_process'
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { open, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { IsletError } from '@islet/contract'
import type { CellStartFields } from '../../warden/messages.gen.ts'
import type { Warden, WardenOptions } from '../../warden/warden.ts'

export type RuntimeName = 'runc' | 'crun'

/** The oldest version that passes the suite. */
const OLDEST_CRUN = [1, 8] as const

const PROGRAM_DIRECTORIES = ['/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin']

export class Runtime {
  readonly #warden: Warden
  readonly #name: RuntimeName
  readonly #root: string

  constructor(warden: Warden, name: RuntimeName, runDir: string) {
    this.#warden = warden
    this.#name = name
    this.#root = runtimeRoot(name, runDir)
  }

  /** Starts the bundle in `directory`; returns the pid of its first process. */
  async start(directory: string, request: CellStartFields & { cell: string }): Promise<number> {
    try {
      await this.#warden.request('CELL_START', request)
    } catch (error) {
      throw await runtimeFailure(directory, `${this.#name} could not start a sandbox`, error)
    }
    const pid = Number(readFileSync(join(directory, 'pid'), 'utf8'))
    this.forget(request.cell)
    return pid
  }

  /** Removes the runtime's record of a container. */
  forget(id: string): void {
    rmSync(join(this.#root, id), { recursive: true, force: true })
  }

  /** The containers with a record: their start was interrupted. */
  list(): Promise<string[]> {
    return readdir(this.#root).catch(() => [])
  }
}

/** Prefers crun, which needs a fifth of runc's CPU time to start a cell, unless it was built without seccomp or capabilities. */
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

/** The options that let a warden start cells with this runtime. */
export function cellOptions(name: RuntimeName | 'runsc', runDir: string): WardenOptions['cells'] {
  const runtime = findProgram(name)
  if (!runtime)
    throw new IsletError('engine_unavailable', `${name} is not installed.`, {
      hint: `islet setup${name === 'runsc' ? ' --gvisor' : ''} installs it.`,
    })
  return { directory: join(runDir, 's'), runtime, runtimeRoot: runtimeRoot(name, runDir) }
}

/** The path of a program in the usual directories. */
export function findProgram(name: string): string | undefined {
  return PROGRAM_DIRECTORIES.map((directory) => join(directory, name)).find(existsSync)
}

/** The state directory of a runtime; crun and runc share one. See also RUNTIME_ROOTS. */
export function runtimeRoot(name: RuntimeName | 'runsc', runDir: string): string {
  return join(runDir, name === 'runsc' ? 'runsc' : 'runc')
}

export async function runtimeVersion(name: RuntimeName | 'runsc'): Promise<string | undefined> {
  try {
    const { stdout } = await promisify(execFile)(name, ['--version'])
    return /version (\S+)/.exec(stdout)?.[1]
  } catch {
    return undefined
  }
}

/** The log is bounded because a hostile sandbox may influence its content. */
const TAIL_BYTES = 64 * 1024

/** The error for a runtime that failed, with the reason from its log in the cell's `directory`. */
export async function runtimeFailure(directory: string, what: string, cause: unknown): Promise<IsletError> {
  const reason = await failureReason(directory, cause)
  return new IsletError('engine_unavailable', `${what}: ${reason.slice(0, 500)}`, { cause })
}

export async function failureReason(directory: string, cause: unknown): Promise<string> {
  return (await lastError(join(directory, 'runtime.log'))) ?? (cause as Error).message
}

/** The first line of the last message in a runtime's log. */
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

/** Undefined if the literal is not valid JSON. */
function parsed(literal: string): string | undefined {
  try {
    return String(JSON.parse(literal))
  } catch {
    return undefined
  }
}
