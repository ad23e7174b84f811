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
const [ID, NAME, ...REST] = COLUMNS
const ALL_COLUMNS: Column<CheckpointInfo>[] = [ID!, ['SANDBOX', ({ sandboxId }) => sandboxId], NAME!, ...REST]

export function ls(): Command {
  return command(
    'ls',
    'List checkpoints: of a sandbox, oldest first; of all, also of sandboxes that are gone, newest first.',
    'islet checkpoint ls\nislet checkpoint ls dev',
  )
    .alias('list')
    .argument('[sandbox]', 'id, beginning of an id, or name; of one that is gone its whole id')
    .option('-q, --quiet', 'only ids')
    .action(async (text: string | undefined, flags: JsonFlag & { quiet?: true }) => {
      const islet = connect()
      const sandboxId = text === undefined ? undefined : await findSandboxId(islet, text)
      const found: CheckpointInfo[] = sandboxId === undefined ? [] : await islet.checkpoints.list(sandboxId)
      if (sandboxId === undefined)
        for await (const one of islet.checkpoints.all({ limit: 1000 })) found.push(one)
      if (flags.json) return printJson(found)
      if (flags.quiet) return found.forEach(({ id }) => void print(id))
      if (found.length > 0) return printTable(found, sandboxId === undefined ? ALL_COLUMNS : COLUMNS)
      if (sandboxId === undefined)
        return say('There are no checkpoints. islet checkpoint create SANDBOX NAME makes one.')
      say(`${sandboxId} has no checkpoints. islet checkpoint create ${sandboxId} NAME makes one.`)
    })
}
