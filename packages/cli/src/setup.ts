import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { CliError } from './errors.ts'
import { say } from './output.ts'

/** In the npm package the code is in dist/, beside scripts/. */
const PACKED = fileURLToPath(new URL('../scripts/setup', import.meta.url))
const SCRIPT = existsSync(PACKED) ? PACKED : fileURLToPath(new URL('../../../scripts/setup', import.meta.url))

/** Runs scripts/setup. Its messages go to stderr; only the list of --print goes to stdout. */
export function runSetup(flags: readonly string[] = []): Promise<number> {
  return new Promise((resolve, reject) => {
    const child = spawn(SCRIPT, flags, { stdio: ['ignore', flags.includes('--print') ? 'inherit' : 2, 2] })
    child.on('exit', (code, signal) => resolve(signal ? 1 : (code ?? 1)))
    child.on('error', (cause) => {
      const hint = 'The installation lacks its scripts; install the Debian packages that islet doctor names.'
      reject(new CliError('setup_failed', `${SCRIPT} cannot be run: ${cause.message}.`, { hint, cause }))
    })
  })
}

/** Installs missing system packages, as root on Linux. */
export async function ensureSetup(): Promise<void> {
  if (process.platform !== 'linux' || process.geteuid?.() !== 0) return
  if ((await runSetup()) === 0) return
  say('islet: the setup of this machine is incomplete; trying anyway.')
}
