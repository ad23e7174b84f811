// Runs the real command as a child, with nothing of this machine's own settings.
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
  /** A program, with its arguments, that runs the command. */
  wrapper?: readonly string[]
  /** In a terminal of its own, which `stdin` is typed into. It has one screen: all output is in `stdout`. */
  terminal?: true
  /** Kills it, so that it can clean up nothing. */
  signal?: AbortSignal
}

export async function islet(words: readonly string[], options: RunOptions = {}): Promise<Ran> {
  const home = mkdtempSync(join(tmpdir(), 'islet-cli-'))
  const env = {
    PATH: process.env.PATH,
    HOME: home,
    ISLET_DATA_DIR: home,
    ISLET_API_KEY: TEST_KEY,
    ...(options.url && { ISLET_URL: options.url }),
    ...options.env,
  }
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
    // Its end would be Ctrl-D on a terminal.
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

const quote = (word: string): string => `'${word.replaceAll("'", "'\\''")}'`
