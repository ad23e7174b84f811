import type { Command } from 'commander'
import { addEnvOptions, type EnvFlags, toEnv } from '../../args/env.ts'
import { findSandbox } from '../../args/find.ts'
import { size } from '../../args/parse.ts'
import {
  addFileOption,
  addStdioOptions,
  addTimeoutOption,
  addUserOptions,
  type FileFlags,
  type StdioFlags,
} from '../../args/stdio.ts'
import { COMMAND, commandAfter, toCommand } from '../../args/words.ts'
import { type JsonFlag, sandboxCommand } from '../../command.ts'
import { connect } from '../../connect.ts'
import { toFiles } from '../../copy/location.ts'
import { copyIn } from '../../copy/upload.ts'
import { UsageError } from '../../errors.ts'
import { printResult } from '../../output.ts'
import { runInForeground, runInTerminal } from '../../stdio/foreground.ts'
import { Signals } from '../../stdio/signals.ts'
import { requireTerminal } from '../../stdio/terminal.ts'

interface ExecFlags extends EnvFlags, JsonFlag, StdioFlags, FileFlags {
  cwd?: string
  user?: string
  timeout?: number
  detach?: true
  keepAwake?: false
  keepOutput?: string
}

export function exec(): Command {
  const made = sandboxCommand(
    'exec',
    "Run a command in a sandbox and exit with the command's exit code.",
    "islet exec dev -- ls -la\necho hello | islet exec dev 'wc -c'\nislet exec -it dev -- python3",
  ).argument('[command...]', COMMAND)
  addFileOption(addTimeoutOption(addUserOptions(addEnvOptions(made))))
    .option('-d, --detach', 'start it in the background and print its process id')
    .option('--keep-output <size>', 'how much of its output to keep for islet logs, like 64Mi', size)
    .option('--no-keep-awake', 'with --detach: let the sandbox hibernate while it runs')
  return addStdioOptions(made, 'use this terminal').action(action)
}

async function action(text: string, words: string[], flags: ExecFlags, made: Command): Promise<void> {
  const example = flags.tty ? `islet sh ${text} opens a shell.` : `islet exec ${text} -- ls -la`
  const chosen = toCommand(commandAfter(text, words, made), example)
  if (flags.tty) requireTerminal(`islet exec -i ${text} -- COMMAND`)
  if (flags.keepAwake === false && !flags.detach)
    throw new UsageError(
      '--no-keep-awake needs --detach.',
      'A command that you wait for keeps the sandbox awake.',
    )
  const { cwd, user, timeout, keepOutput } = flags
  const options = { cwd, user, timeout, keepOutput, env: toEnv(flags) }
  const files = toFiles(flags.file, cwd)
  const sandbox = await findSandbox(connect(), text)
  using signals = new Signals()
  for (const { local, remote } of files) await copyIn(sandbox, local, remote, signals.aborted)
  if (flags.detach) {
    const { keepAwake } = flags
    const started = await sandbox.exec.spawn(chosen, { ...options, keepAwake, signal: signals.aborted })
    return printResult(started, started.id, flags)
  }
  process.exitCode = flags.tty
    ? await runInTerminal(sandbox, chosen, options, signals)
    : await runInForeground(sandbox, chosen, { flags, options, signals })
}
