import { Argument, type Command } from 'commander'
import { command } from '../command.ts'
import { SCRIPTS, type Shell } from '../completion/scripts.ts'

export function completion(): Command {
  return command(
    'completion',
    'Print the script that completes islet in a shell.',
    'islet completion bash > /etc/bash_completion.d/islet',
  )
    .addArgument(new Argument('<shell>', 'which one').choices(Object.keys(SCRIPTS)))
    .action((shell: Shell) => void process.stdout.write(SCRIPTS[shell]))
}
