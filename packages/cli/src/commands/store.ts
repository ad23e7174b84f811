import { Command } from 'commander'
import { batch } from './store/batch.ts'
import { get } from './store/get.ts'
import { ls } from './store/ls.ts'
import { rm } from './store/rm.ts'
import { set } from './store/set.ts'

const COMMANDS = [get, set, rm, ls, batch]

export function store(): Command {
  const group = new Command('store').description('The key-value store of a sandbox.')
  group.addHelpText('after', '\nExample:\n  islet store set dev progress \'{"step": 3}\' --ttl 1h')
  for (const make of COMMANDS) group.addCommand(make())
  return group
}
