import type { Preview } from '@islet/sdk'
import type { Command } from 'commander'
import { findSandbox } from '../../args/sandbox.ts'
import { command, type JsonFlag } from '../../command.ts'
import { connect } from '../../connect.ts'
import { formatAge } from '../../format.ts'
import { printJson, say } from '../../output.ts'
import { type Column, printTable } from '../../table.ts'

const COLUMNS: Column<Preview>[] = [
  ['PORT', ({ port }) => String(port)],
  ['URL', ({ url }) => url],
  ['ASKS FOR', ({ authConfig }) => authConfig?.type ?? '-'],
  ['AGE', ({ createdAt }) => formatAge(createdAt)],
]

export function ls(): Command {
  return command('ls', 'List the previews of a sandbox.', 'islet preview ls dev')
    .argument('<sandbox>', 'id, beginning of an id, or name')
    .action(async (text: string, flags: JsonFlag) => {
      const sandbox = await findSandbox(connect(), text)
      const found = await sandbox.listPreviewURLs()
      if (flags.json) return printJson(found)
      if (found.length === 0)
        return say(`${sandbox.id} has no previews. islet preview ${text} PORT makes one.`)
      printTable(found, COLUMNS)
    })
}
