// Runs the programs that make images: argv arrays, a small environment, and a process group that a cancel kills as a whole.
import { type ChildProcess, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { IsletError } from '@islet/contract'

export interface RunOptions {
  signal?: AbortSignal | undefined
  cwd?: string
  env?: Record<string, string>
  /** Called for every line of stdout and stderr. */
  onLine?: (line: string) => void
  /** Written to the program's stdin, which is otherwise /dev/null. */
  input?: Readable
  /** The program ends with the server, even if the server is killed. For long-running programs. */
  tied?: boolean
  /** The most bytes of stdout that are kept. */
  maxOutputBytes?: number
}

export type Argv = readonly [string, ...string[]]

export interface RunResult {
  exitCode: number
  /** Empty if it exceeded `maxOutputBytes`. */
  stdout: string
  /** The last lines of stderr. */
  stderr: string
}

/** Variables that programs inherit from the server: network settings and the location of credentials files. */
const INHERITED = [
  'HOME',
  'HTTP_PROXY',
  'HTTPS_PROXY',
  'NO_PROXY',
  'http_proxy',
  'https_proxy',
  'no_proxy',
  'SSL_CERT_FILE',
  'SSL_CERT_DIR',
  'NODE_EXTRA_CA_CERTS',
  'XDG_RUNTIME_DIR',
  'REGISTRY_AUTH_FILE',
  'DOCKER_CONFIG',
  'TMPDIR',
]
const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'
const KEPT_LINES = 40

/** Runs to the end and returns the exit code; a program that cannot be started, or is cancelled, throws. */
export async function run(argv: Argv, options: RunOptions = {}): Promise<RunResult> {
  const { signal, onLine, input, maxOutputBytes = 1 << 20 } = options
  signal?.throwIfAborted()
  const env: Record<string, string> = { PATH, LANG: 'C.UTF-8', ...options.env }
  for (const key of INHERITED) {
    const value = process.env[key]
    if (value !== undefined && !(key in env)) env[key] = value
  }
  const [program, ...args] = options.tied ? (['setpriv', '--pdeathsig', 'KILL', ...argv] as const) : argv
  const child = spawn(program, args, {
    cwd: options.cwd ?? '/',
    env,
    detached: true,
    stdio: [input ? 'pipe' : 'ignore', 'pipe', 'pipe'],
  })
  const started = new Promise<void>((resolve, reject) => {
    child.once('spawn', resolve)
    child.once('error', (error) => reject(notStarted(argv[0], error)))
  })
  const closed = new Promise<number>((resolve) => {
    child.once('close', (code, name) => resolve(code ?? (name ? 128 : 1)))
  })
  const output: Buffer[] = []
  let outputBytes = 0
  const said: string[] = []
  const lines = (from: Readable | null, take: (line: string) => void) => {
    if (from) createInterface({ input: from }).on('line', take)
  }
  child.stdout?.on('data', (chunk: Buffer) => {
    outputBytes += chunk.length
    if (outputBytes > maxOutputBytes) output.length = 0
    else output.push(chunk)
  })
  lines(child.stdout, (line) => onLine?.(line))
  lines(child.stderr, (line) => {
    // The URL of a proxy or mirror may contain a password.
    said.push(line.slice(0, 1000).replaceAll(/:\/\/[^/\s@]*@/g, '://'))
    if (said.length > KEPT_LINES) said.shift()
    onLine?.(line)
  })
  await started
  const stop = () => killGroup(child)
  signal?.addEventListener('abort', stop, { once: true })
  if (signal?.aborted) stop()
  if (input && child.stdin) {
    // A program that ends early closes its stdin; its exit code tells why.
    child.stdin.on('error', () => input.destroy())
    input.on('error', stop)
    input.pipe(child.stdin)
  }
  const exitCode = await closed
  signal?.removeEventListener('abort', stop)
  input?.destroy()
  signal?.throwIfAborted()
  if (input?.errored) throw input.errored
  // setpriv exits with 127 if the program is not installed.
  if (options.tied && exitCode === 127) throw notStarted(argv[0])
  return { exitCode, stdout: Buffer.concat(output).toString(), stderr: said.join('\n') }
}

/** Like `run`, but an exit code other than 0 throws the error of `explain`, or `internal`. */
export async function runOk(
  argv: Argv,
  options: RunOptions & { explain?: (result: RunResult) => IsletError | undefined } = {},
): Promise<RunResult> {
  const result = await run(argv, options)
  if (result.exitCode === 0) return result
  if (/no space left on device|disk quota exceeded|wrote only \d+ of/i.test(result.stderr)) throw diskFull()
  throw options.explain?.(result) ?? failed(argv[0], result)
}

export function failed(program: string, result: RunResult): IsletError {
  const last = result.stderr.trim().split('\n').at(-1) ?? ''
  return new IsletError('internal', `${program} ended with code ${result.exitCode}: ${last.slice(0, 500)}`, {
    details: { program, exitCode: result.exitCode, stderr: result.stderr.slice(-4000) },
  })
}

export function diskFull(cause?: unknown): IsletError {
  return new IsletError('server_disk_full', 'The disk that holds the images is full.', {
    hint: 'Free space with islet image rm, or use a larger disk for the data directory.',
    cause,
  })
}

/** Kills the program and everything it started; its output is discarded anyway. */
function killGroup(child: ChildProcess): void {
  if (child.pid === undefined) return
  try {
    process.kill(-child.pid, 'SIGKILL')
  } catch {
    // It has ended already.
  }
}

function notStarted(program: string, cause?: NodeJS.ErrnoException): IsletError {
  if (cause && cause.code !== 'ENOENT')
    return new IsletError('internal', `${program} cannot be started.`, { cause })
  return new IsletError('not_supported', `The program ${program} is not installed on this machine.`, {
    hint: 'scripts/setup, run as root, installs everything that Islet needs.',
    cause,
  })
}
