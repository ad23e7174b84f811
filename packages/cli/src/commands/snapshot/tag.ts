import type { Command } from 'commander'
import { findSnapshot } from '../../args/snapshot.ts'
import { command, type JsonFlag } from '../../command.ts'
import { connect } from '../../connect.ts'
import { print, printJson } from '../../output.ts'

export function tag(): Command {
  return command(
    'tag',
    'Give a snapshot a tag; if another has it, it moves.',
    'islet snapshot tag snp-4f… stable',
  )
    .argument('<snapshot>', 'id, beginning of an id, tag, or name')
    .argument('<tag>', 'letters, digits, dots, dashes and underscores')
    .action(async (text: string, name: string, flags: JsonFlag) => {
      const islet = connect()
      const { id } = await findSnapshot(islet, text)
      const changed = await islet.snapshots.tag(id, name)
      if (flags.json) printJson(changed)
      else print(id)
    })
}
