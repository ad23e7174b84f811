import { IsletError } from '@islet/contract/client'
import { CommanderError } from 'commander'
import { createProgram } from './app.ts'
import { UsageError } from './errors.ts'
import { flush, reportFailure } from './output.ts'

// These commands exit with the code of the command they run; 125 to 127 mean that it did not run, as in docker.
const RUNNING_COMMANDS = ['run', 'exec', 'code', 'sh']
const NEVER_RAN = 125
const EXIT_CODES: Record<string, number> = {
  command_not_found: 127,
  interpreter_not_found: 127,
  command_not_executable: 126,
}
const USAGE = 2
const INTERRUPTED = 130

const argv = process.argv.slice(2)
let json = wantsJson(argv)
const program = createProgram({ hasSeparator: argv.includes('--'), json })
let current = ''
program.hook('preAction', (_, action) => {
  current = action.name()
  // A --json after the sandbox belongs to the command that runs in it.
  json = action.opts().json === true
})

try {
  await program.parseAsync(argv, { from: 'user' })
} catch (error) {
  process.exitCode = exitCodeOf(error)
  if (!(error instanceof CommanderError)) reportFailure(error, { json })
  else if (json && process.exitCode !== 0) reportFailure(asUsage(error), { json })
}
await flush()
// Open handles, such as a stdin that never ends, must not keep a finished command running.
process.exit()

function exitCodeOf(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : USAGE
  if (error instanceof UsageError) return USAGE
  if (error instanceof Error && error.name === 'AbortError') return INTERRUPTED
  if (!RUNNING_COMMANDS.includes(current)) return 1
  return (error instanceof IsletError && EXIT_CODES[error.code]) || NEVER_RAN
}

function asUsage(error: CommanderError): UsageError {
  return new UsageError(error.message.replace(/^error: /, ''), 'islet --help lists the commands.')
}

/** Words after `--` belong to the command that runs in the sandbox. */
function wantsJson(words: string[]): boolean {
  const end = words.indexOf('--')
  return words.slice(0, end < 0 ? words.length : end).includes('--json')
}
