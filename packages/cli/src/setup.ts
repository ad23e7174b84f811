import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { CliError } from './errors.ts'
import { say } from './output.ts'

/** In the package the code is in dist/, beside scripts/. */
const PACKED = fileURLToPath(new URL('../scripts/setup', import.meta.url))
const SCRIPT = existsSync(PACKED) ? PACKED : fileURLToPath(new URL('../../../scripts/setup', import.meta.url))

/** Runs scripts/setup; what it says goes to stderr. */
export function runSetup(flags: readonly string[] = []): Promise<number> {
  return new Promise((resolve, reject) => {
    const child = spawn(SCRIPT, flags, { stdio: ['ignore', flags.includes('--print') ? 'inherit' : 2, 2] })
    child.on('exit', (code, signal) => resolve(signal ? 1 : (code ?? 1)))
    child.on('error', (cause) => {
      const hint =
        'Islet was installed without its scripts; install the Debian packages that islet doctor names.'
      reject(new CliError('setup_failed', `${SCRIPT} cannot be run: ${cause.message}.`, { hint, cause }))
    })
  })
}

/** Installs what is missing when we may; quiet when nothing is. */
export async function ensureSetup(): Promise<void> {
  if (process.platform !== 'linux' || process.geteuid?.() !== 0) return
  if ((await runSetup()) === 0) return
  say('islet: this machine is not completely set up; trying nevertheless.')
}
