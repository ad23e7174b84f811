// What a command in a sandbox gets of our stdin and terminal, as options: the same for `exec` and `run`.
import { type Command, Option } from 'commander'
import { hasPipedStdin } from '../stdio/pipe.ts'

export interface StdioFlags {
  interactive?: true
  tty?: true
  stdin?: false
}

export function addStdioOptions(command: Command, tty: string): Command {
  return command
    .addOption(
      new Option(
        '-i, --interactive',
        'keep stdin open, also that of a terminal; a pipe is passed on anyway',
      ).conflicts(['stdin', 'detach']),
    )
    .addOption(new Option('-t, --tty', tty).conflicts(['stdin', 'detach', 'json']))
    .option('-n, --no-stdin', 'do not pass on stdin')
}

export function passesStdin({ interactive, stdin }: StdioFlags): boolean {
  return stdin !== false && (interactive === true || hasPipedStdin())
}
