import { Command } from 'commander'
import { ls } from './env/ls.ts'
import { rm } from './env/rm.ts'
import { set } from './env/set.ts'

const COMMANDS = [ls, set, rm]

export function env(): Command {
  const group = new Command('env').description('The .env files of a sandbox.')
  group.addHelpText('after', '\nExample:\n  islet env set dev API_URL=http://localhost:3000')
  for (const make of COMMANDS) group.addCommand(make())
  return group
}
