import { readFileSync } from 'node:fs'
import { extname } from 'node:path'
import type { LanguageName } from '@islet/sdk'
import { type Command, Option } from 'commander'
import { addEnvOptions, type EnvFlags, toEnv } from '../args/env.ts'
import { duration } from '../args/parse.ts'
import { findSandbox } from '../args/sandbox.ts'
import { command, type JsonFlag } from '../command.ts'
import { connect } from '../connect.ts'
import { CliError, UsageError } from '../errors.ts'
import { printJson, say, sayHint, writeAll } from '../output.ts'
import { CAPTURE, readable } from '../stdio/capture.ts'
import { hasPipedStdin, readStdin } from '../stdio/pipe.ts'
import { Signals } from '../stdio/signals.ts'

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

/** What the name of a file says. */
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
  const made = command(
    'code',
    'Run a piece of code in a sandbox; the exit code is its own.',
    "islet code dev script.py\necho 'console.log(1 + 1)' | islet code dev",
  )
    .argument('<sandbox>', 'id, beginning of an id, or name')
    .argument('[file]', 'of this machine; - or none: stdin')
    .addOption(
      new Option('-l, --language <name>', 'default: by the name of the file, else by the code').choices(
        LANGUAGES,
      ),
    )
  return addEnvOptions(made)
    .option('-w, --cwd <path>', 'where it runs')
    .option('-u, --user <name>', 'who it runs as')
    .option('--timeout <duration>', 'kill it after this long, like 30s (exit code 124)', duration)
    .action(action)
}

async function action(text: string, file: string | undefined, flags: CodeFlags): Promise<void> {
  const { cwd, user, timeout, json } = flags
  const language = flags.language ?? EXTENSIONS[extname(file ?? '').toLowerCase()]
  const source = await read(file)
  const sandbox = await findSandbox(connect(), text)
  using signals = new Signals()
  const options = { ...CAPTURE, language, cwd, user, timeout, env: toEnv(flags), signal: signals.aborted }
  const result = await sandbox.runCode(source, options)
  process.exitCode = result.exitCode
  if (json) return printJson(readable(result))
  await writeAll(process.stdout, Buffer.from(result.stdout, 'base64'))
  await writeAll(process.stderr, Buffer.from(result.stderr, 'base64'))
  if (result.droppedBytes > 0) say(`islet: ${result.droppedBytes} more bytes were printed than are shown.`)
  if (result.hint) sayHint(result.hint)
}

async function read(file: string | undefined): Promise<string> {
  if (file === undefined || file === '-') {
    if (file === undefined && !hasPipedStdin())
      throw new UsageError('There is no code to run.', 'islet code SANDBOX FILE, or pipe the code into it.')
    return Buffer.from(await readStdin()).toString()
  }
  try {
    return readFileSync(file, 'utf8')
  } catch (cause) {
    const reason = (cause as Error).message
    throw new CliError('file_not_readable', `${file} cannot be read: ${reason}.`, {
      hint: `ls -l ${file}`,
      cause,
    })
  }
}
