import type { PatchInfo } from '@islet/sdk'
import type { Command } from 'commander'
import { command, type JsonFlag } from '../../../command.ts'
import { connect } from '../../../connect.ts'
import { formatAge, formatBytes } from '../../../format.ts'
import { print, printJson, say } from '../../../output.ts'
import { type Column, printTable } from '../../../table.ts'

const COLUMNS: Column<PatchInfo>[] = [
  ['ID', ({ id }) => id],
  ['SIZE', ({ script }) => formatBytes(Buffer.byteLength(script))],
  ['AGE', ({ createdAt }) => formatAge(createdAt)],
  ['DESCRIPTION', ({ description }) => description ?? '-'],
]

export function ls(): Command {
  return command(
    'ls',
    'List the patches of a checkpoint, in the order they are applied; --json has the scripts.',
    'islet checkpoint patch ls ckp-…',
  )
    .alias('list')
    .argument('<checkpoint>', 'id')
    .option('-q, --quiet', 'only ids')
    .action(async (checkpointId: string, flags: JsonFlag & { quiet?: true }) => {
      const found = await connect().checkpoints.patches.list(checkpointId)
      if (flags.json) return printJson(found)
      if (flags.quiet) return found.forEach(({ id }) => void print(id))
      if (found.length === 0) return say(`${checkpointId} has no patches.`)
      printTable(found, COLUMNS)
    })
}
