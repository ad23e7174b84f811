import { extname } from 'node:path'
import type { LanguageName } from '@islet/sdk'
import { type Command, Option } from 'commander'
import { addEnvOptions, type EnvFlags, toEnv } from '../../args/env.ts'
import { findSandbox } from '../../args/find.ts'
import { addTimeoutOption, addUserOptions } from '../../args/stdio.ts'
import { type JsonFlag, sandboxCommand } from '../../command.ts'
import { connect } from '../../connect.ts'
import { UsageError } from '../../errors.ts'
import { printJson, say, sayHint } from '../../output.ts'
import { CAPTURE, readable, writeCaptured } from '../../stdio/capture.ts'
import { readText } from '../../stdio/input.ts'
import { Signals } from '../../stdio/signals.ts'

interface CodeFlags extends EnvFlags, JsonFlag {
  language?: LanguageName
  cwd?: string
  user?: string
  timeout?: number
}

const LANGUAGES: readonly LanguageName[] = [
  'python',
  'python3',
  'py',
  'node',
  'javascript',
  'js',
  'typescript',
  'ts',
  'deno',
  'bun',
  'shell',
  'bash',
  'sh',
]

const EXTENSIONS: Record<string, LanguageName> = {
  '.py': 'python',
  '.js': 'node',
  '.cjs': 'node',
  '.mjs': 'node',
  '.ts': 'typescript',
  '.cts': 'typescript',
  '.mts': 'typescript',
  '.sh': 'shell',
  '.bash': 'shell',
}

export function code(): Command {
  const language = 'language of the code; default: by file extension, else guessed from the code'
  const made = sandboxCommand(
    'code',
    'Run a piece of code in a sandbox and exit with its exit code.',
    "islet code dev script.py\necho 'console.log(1 + 1)' | islet code dev",
  )
    .argument('[file]', 'local file; - or nothing reads stdin')
    .addOption(new Option('-l, --language <name>', language).choices(LANGUAGES))
  return addTimeoutOption(addUserOptions(addEnvOptions(made))).action(action)
}

/** Undefined: the server guesses the language from the code. */
export function languageOf(file: string | undefined): LanguageName | undefined {
  return EXTENSIONS[extname(file ?? '').toLowerCase()]
}

async function action(text: string, file: string | undefined, flags: CodeFlags): Promise<void> {
  const { cwd, user, timeout, json } = flags
  const language = flags.language ?? languageOf(file)
  const missing = new UsageError(
    'There is no code to run.',
    'islet code SANDBOX FILE, or pipe the code into it.',
  )
  const source = await readText(file, missing)
  const sandbox = await findSandbox(connect(), text)
  using signals = new Signals()
  const options = { ...CAPTURE, language, cwd, user, timeout, env: toEnv(flags), signal: signals.aborted }
  const result = await sandbox.runCode(source, options)
  process.exitCode = result.exitCode
  if (json) return printJson(readable(result))
  await writeCaptured(result)
  if (result.droppedBytes > 0) say(`islet: ${result.droppedBytes} more bytes were printed than are shown.`)
  if (result.hint) sayHint(result.hint)
}
