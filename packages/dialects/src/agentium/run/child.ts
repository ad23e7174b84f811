// A program of this machine, from its start to its end or its timeout.
import { type ChildProcess, spawn } from 'node:child_process'
import type { Readable } from 'node:stream'
import { setTimeout as sleep, setImmediate as turn } from 'node:timers/promises'
import { IsletError } from '@islet/sdk'
import type { SandboxRunResult } from '../types.ts'
import { killAll, MARK } from './descendants.ts'
import { exitCodeOf, Output } from './output.ts'

export interface Program {
  argv: readonly string[]
  cwd: string
  env: Record<string, string>
  timeoutSeconds: number
  /** Different for each run: see descendants.ts. */
  mark: string
  signal?: AbortSignal
}

/** Of the environment of this process, only these variables reach a program. */
const INHERITED = ['PATH', 'HOME', 'USER', 'LANG', 'LC_ALL', 'TZ', 'TMPDIR'] as const
/** A program has ended when its process has, but what it wrote before may not be read yet. A process in the background may hold the pipes. */
const DRAIN_MS = 100

export function cleanEnv(): Record<string, string> {
  const given = INHERITED.map((name) => [name, process.env[name]] as const)
  return Object.fromEntries(
    given.filter((entry): entry is [(typeof INHERITED)[number], string] => entry[1] !== undefined),
  )
}

export async function runProgram(program: Program): Promise<SandboxRunResult> {
  const { argv, cwd, env, mark, signal, timeoutSeconds } = program
  if (signal?.aborted) throw aborted(signal)
  const child = await started(
    spawn(argv[0]!, argv.slice(1), {
      cwd,
      env: { ...env, [MARK]: mark },
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
    }),
    argv[0]!,
  )
  const output = new Output()
  const streams = ['stdout', 'stderr'] as const
  for (const name of streams) child[name]!.on('data', (chunk: Buffer) => output.add(name, chunk))
  const closed = new Promise<void>((resolve) => child.once('close', () => resolve()))
  let timedOut = false
  const end = () => killAll({ pid: child.pid!, mark })
  const timer = setTimeout(() => {
    timedOut = true
    end()
  }, timeoutSeconds * 1000)
  signal?.addEventListener('abort', end, { once: true })
  try {
    const exitCode = await ended(child)
    await Promise.race([closed, sleep(DRAIN_MS).then(() => turn())])
    if (signal?.aborted) throw aborted(signal)
    return output.result(exitCode, timedOut)
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener('abort', end)
    for (const name of streams) leave(child[name]!)
  }
}

function started(child: ChildProcess, program: string): Promise<ChildProcess> {
  return new Promise((resolve, reject) => {
    child.once('spawn', () => resolve(child))
    child.once('error', (error: NodeJS.ErrnoException) => {
      const isMissing = error.code === 'ENOENT'
      const message = isMissing
        ? `${program} is not installed on this machine.`
        : `${program}: ${error.code}.`
      const code = isMissing ? 'interpreter_not_found' : 'command_not_executable'
      reject(new IsletError(code, message, { cause: error, hint: `${program} must be in PATH.` }))
    })
  })
}

function ended(child: ChildProcess): Promise<number> {
  if (child.exitCode !== null || child.signalCode !== null)
    return Promise.resolve(exitCodeOf(child.exitCode, child.signalCode))
  return new Promise((resolve) => child.once('exit', (code, signal) => resolve(exitCodeOf(code, signal))))
}

/** Reads on without keeping anything, so that a process in the background can go on writing, and without keeping this process alive. */
function leave(stream: Readable & { unref?(): void }): void {
  stream.removeAllListeners('data').resume()
  stream.unref?.()
}

export function aborted(signal: AbortSignal): DOMException {
  const error = new DOMException('The operation was aborted.', 'AbortError')
  Object.defineProperty(error, 'cause', { value: signal.reason })
  return error
}
