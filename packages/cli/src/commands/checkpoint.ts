import { Command } from 'commander'
import { create } from './checkpoint/create.ts'
import { ls } from './checkpoint/ls.ts'
import { patch } from './checkpoint/patch.ts'
import { rm } from './checkpoint/rm.ts'

const COMMANDS = [create, ls, rm, patch]

export function checkpoint(): Command {
  const group = new Command('checkpoint')
    .description('Saved states of a sandbox, to go back to or to begin others with.')
    .enablePositionalOptions()
  group.addHelpText(
    'after',
    '\nExample:\n  islet checkpoint create dev before-upgrade\n  islet restore dev before-upgrade',
  )
  for (const make of COMMANDS) group.addCommand(make())
  return group
}
