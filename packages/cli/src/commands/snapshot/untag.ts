import type { Command } from 'commander'
import { findSnapshot } from '../../args/snapshot.ts'
import { command, type JsonFlag } from '../../command.ts'
import { connect } from '../../connect.ts'
import { print, printJson } from '../../output.ts'

export function untag(): Command {
  return command('untag', 'Take the tag of a snapshot away.', 'islet snapshot untag stable')
    .argument('<snapshot>', 'id, beginning of an id, tag, or name')
    .action(async (text: string, flags: JsonFlag) => {
      const islet = connect()
      const { id } = await findSnapshot(islet, text)
      const changed = await islet.snapshots.tag(id, null)
      if (flags.json) printJson(changed)
      else print(id)
    })
}
