import { Argument, type Command } from 'commander'
import { command } from '../command.ts'
import { SCRIPTS, type Shell } from '../completion/scripts.ts'
import { install } from './completion/install.ts'
import { uninstall } from './completion/uninstall.ts'

export function completion(): Command {
  return command(
    'completion',
    'Complete islet in a shell: print the script for it, or install it.',
    'islet completion install\nislet completion bash | less',
  )
    .addArgument(new Argument('<shell>', 'which one').choices(Object.keys(SCRIPTS)))
    .action((shell: Shell) => void process.stdout.write(SCRIPTS[shell]))
    .enablePositionalOptions()
    .addCommand(install())
    .addCommand(uninstall())
}
