import { Command } from 'commander'
import { create } from './overlay/create.ts'
import { ls } from './overlay/ls.ts'
import { rm } from './overlay/rm.ts'

const COMMANDS = [ls, create, rm]

export function overlay(): Command {
  const group = new Command('overlay').description('Template directories that are copied in a sandbox.')
  group.addHelpText('after', '\nExample:\n  islet overlay create dev /opt/templates/node project')
  for (const make of COMMANDS) group.addCommand(make())
  return group
}
