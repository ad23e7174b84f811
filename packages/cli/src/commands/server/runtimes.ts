import type { RuntimeInfo } from '@islet/sdk'
import type { Command } from 'commander'
import { command, type JsonFlag } from '../../command.ts'
import { connect } from '../../connect.ts'
import { formatAge, formatSize } from '../../format.ts'
import { printJson } from '../../output.ts'
import { type Column, printTable } from '../../table.ts'

const COLUMNS: Column<RuntimeInfo>[] = [
  ['NAME', ({ name }) => name],
  ['READY', ({ ready }) => (ready ? 'yes' : 'no'), ({ ready }) => (ready ? 'green' : 'dim')],
  ['IMAGE', ({ image }) => image ?? '-'],
  ['SIZE', ({ sizeBytes }) => formatSize(sizeBytes)],
  ['AGE', ({ createdAt }) => (createdAt === null ? '-' : formatAge(createdAt))],
  ['DESCRIPTION', ({ description }) => description],
]

export function runtimes(): Command {
  return command('runtimes', 'List the runtimes that sandboxes can use.', 'islet runtimes').action(
    async (flags: JsonFlag) => {
      const found = await connect().runtimes.list()
      if (flags.json) printJson(found)
      else printTable(found, COLUMNS)
    },
  )
}
