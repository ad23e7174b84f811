import { Command } from 'commander'
import { create } from './snapshot/create.ts'
import { exportSnapshot } from './snapshot/export.ts'
import { importSnapshot } from './snapshot/import.ts'
import { info } from './snapshot/info.ts'
import { ls } from './snapshot/ls.ts'
import { rm } from './snapshot/rm.ts'
import { tag } from './snapshot/tag.ts'
import { tree } from './snapshot/tree.ts'
import { untag } from './snapshot/untag.ts'

const COMMANDS = [create, ls, info, tag, untag, rm, tree, exportSnapshot, importSnapshot]

export function snapshot(): Command {
  const group = new Command('snapshot').description('Saved sandboxes that new ones begin with.')
  group.addHelpText(
    'after',
    '\nExample:\n  islet snapshot create dev --tag with-deps\n  islet create --snapshot with-deps',
  )
  for (const make of COMMANDS) group.addCommand(make())
  return group
}
