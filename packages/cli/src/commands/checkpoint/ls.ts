import type { CheckpointInfo } from '@islet/sdk'
import type { Command } from 'commander'
import { findSandboxId } from '../../args/sandbox.ts'
import { command, type JsonFlag } from '../../command.ts'
import { connect } from '../../connect.ts'
import { formatAge, formatBytes } from '../../format.ts'
import { print, printJson, say } from '../../output.ts'
import { type Column, printTable } from '../../table.ts'

const COLUMNS: Column<CheckpointInfo>[] = [
  ['ID', ({ id }) => id],
  ['NAME', ({ name }) => name],
  ['SIZE', ({ sizeBytes }) => (sizeBytes === null ? '-' : formatBytes(sizeBytes))],
  ['FROZEN', ({ frozenMs }) => `${frozenMs.toFixed(1)} ms`],
  ['MEMORY', ({ memory }) => (memory ? 'yes' : 'no')],
  ['AGE', ({ createdAt }) => formatAge(createdAt)],
]

export function ls(): Command {
  return command(
    'ls',
    'List the checkpoints of a sandbox, oldest first; of one that is gone by its whole id.',
    'islet checkpoint ls dev',
  )
    .alias('list')
    .argument('<sandbox>', 'id, beginning of an id, or name')
    .option('-q, --quiet', 'only ids')
    .action(async (text: string, flags: JsonFlag & { quiet?: true }) => {
      const islet = connect()
      const sandboxId = await findSandboxId(islet, text)
      const found = await islet.checkpoints.list(sandboxId)
      if (flags.json) return printJson(found)
      if (flags.quiet) return found.forEach(({ id }) => void print(id))
      if (found.length === 0)
        return say(`${sandboxId} has no checkpoints. islet checkpoint create ${sandboxId} NAME makes one.`)
      printTable(found, COLUMNS)
    })
}
