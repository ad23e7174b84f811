// Runs the real command as a child process, without the settings of this machine.
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { TEST_KEY } from '../../server/test/support/server.ts'

export const BIN =
  process.env.ISLET_TEST_PROGRAM ?? fileURLToPath(new URL('../bin/islet.js', import.meta.url))

export interface Ran {
  exitCode: number | null
  stdout: string
  stderr: string
}

export interface RunOptions {
  url?: string
  stdin?: string
  env?: Record<string, string>
  cwd?: string
  /** A program and its arguments that start the command. */
  wrapper?: readonly string[]
  /** Runs it in a terminal; `stdin` is typed there. A terminal has one screen, so `stdout` holds all output. */
  terminal?: true
  /** Kills it with SIGKILL, so that it cannot clean up. */
  signal?: AbortSignal
}

export async function islet(words: readonly string[], options: RunOptions = {}): Promise<Ran> {
  const home = mkdtempSync(join(tmpdir(), 'islet-cli-'))
  const env = { ...environment(home, options.url), ...options.env }
  try {
    const [program, ...args] = options.terminal
      ? ['script', '-qefc', [process.execPath, BIN, ...words].map(quote).join(' '), '/dev/null']
      : [...(options.wrapper ?? []), process.execPath, BIN, ...words]
    const child = spawn(program!, args, {
      env,
      cwd: options.cwd ?? home,
      signal: options.signal,
      killSignal: 'SIGKILL',
    })
    const ran: Ran = { exitCode: null, stdout: '', stderr: '' }
    child.stdout.setEncoding('utf8').on('data', (text) => {
      ran.stdout += text
    })
    child.stderr.setEncoding('utf8').on('data', (text) => {
      ran.stderr += text
    })
    child.stdin.on('error', () => {}) // it may end without reading
    // On a terminal the end of stdin would be Ctrl-D.
    if (options.terminal) child.stdin.write(options.stdin ?? '')
    else child.stdin.end(options.stdin ?? '')
    ran.exitCode = await new Promise((resolve, reject) => {
      child.on('close', resolve)
      child.on('error', reject)
    })
    return ran
  } finally {
    rmSync(home, { recursive: true, force: true })
  }
}

/** The environment of a command that calls the server at `url`. */
export function environment(home: string, url?: string): NodeJS.ProcessEnv {
  return {
    PATH: process.env.PATH,
    HOME: home,
    ISLET_DATA_DIR: home,
    ISLET_API_KEY: TEST_KEY,
    ...(url && { ISLET_URL: url }),
  }
}

const quote = (word: string): string => `'${word.replaceAll("'", "'\\''")}'`
