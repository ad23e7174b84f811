import type { Command } from 'commander'
import { command, type JsonFlag } from '../../../command.ts'
import { connect } from '../../../connect.ts'
import { print, printJson } from '../../../output.ts'

export function rm(): Command {
  return command(
    'rm',
    'Remove patches from a checkpoint; where they were applied they stay so.',
    'islet checkpoint patch rm ckp-… pat-…',
  )
    .argument('<checkpoint>', 'id')
    .argument('<patch...>', 'ids')
    .action(async (checkpointId: string, ids: string[], flags: JsonFlag) => {
      const { patches } = connect().checkpoints
      for (const id of ids) {
        await patches.delete(checkpointId, id)
        if (!flags.json) print(id)
      }
      if (flags.json) printJson({ removed: ids })
    })
}
