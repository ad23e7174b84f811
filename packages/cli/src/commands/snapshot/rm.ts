import type { Command } from 'commander'
import { findSnapshot } from '../../args/snapshot.ts'
import { command, type JsonFlag } from '../../command.ts'
import { connect } from '../../connect.ts'
import { print, printJson } from '../../output.ts'

export function rm(): Command {
  return command('rm', 'Delete snapshots; what others are built on stays.', 'islet snapshot rm with-deps')
    .argument('<snapshot...>', 'ids, beginnings of ids, tags, or names')
    .action(async (texts: string[], flags: JsonFlag) => {
      const islet = connect()
      const removed: string[] = []
      for (const text of texts) {
        const { id } = await findSnapshot(islet, text)
        await islet.snapshots.delete(id)
        removed.push(id)
        if (!flags.json) print(id)
      }
      if (flags.json) printJson({ removed })
    })
}
