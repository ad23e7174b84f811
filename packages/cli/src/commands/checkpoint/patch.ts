import { Command } from 'commander'
import { add } from './patch/add.ts'
import { ls } from './patch/ls.ts'
import { rm } from './patch/rm.ts'
import { runs } from './patch/runs.ts'

const COMMANDS = [add, ls, rm, runs]

export function patch(): Command {
  const group = new Command('patch')
    .description('Scripts that are run once in every sandbox made from a checkpoint.')
    .enablePositionalOptions()
  group.addHelpText(
    'after',
    '\nExample:\n  islet checkpoint patch add ckp-… ./update.sh --description "new CA"',
  )
  for (const make of COMMANDS) group.addCommand(make())
  return group
}
