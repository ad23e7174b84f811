// Options for how a command runs in a sandbox, and whether it gets our stdin and terminal.
import { type Command, Option } from 'commander'
import { hasPipedStdin } from '../stdio/input.ts'
import { duration, many } from './parse.ts'

export interface StdioFlags {
  interactive?: true
  tty?: true
  stdin?: false
}

export function addStdioOptions(command: Command, tty: string): Command {
  const interactive = 'pass stdin on even if it is a terminal; a pipe is always passed on'
  return command
    .addOption(new Option('-i, --interactive', interactive).conflicts(['stdin', 'detach']))
    .addOption(new Option('-t, --tty', tty).conflicts(['stdin', 'detach', 'json']))
    .option('-n, --no-stdin', 'do not pass stdin on')
}

export function passesStdin({ interactive, stdin }: StdioFlags): boolean {
  return stdin !== false && (interactive === true || hasPipedStdin())
}

export function addUserOptions(command: Command): Command {
  return command
    .option('-w, --cwd <path>', 'directory to run in')
    .option('-u, --user <name>', 'user to run as')
}

export interface FileFlags {
  file?: string[]
}

export function addFileOption(command: Command): Command {
  return command.option(
    '--file <local:remote>',
    'first copy a file or directory into the sandbox (repeat)',
    many,
  )
}

export function addTimeoutOption(command: Command): Command {
  return command.option('--timeout <duration>', 'kill it after this time, like 30s (exit code 124)', duration)
}
