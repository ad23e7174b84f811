import type { SnapshotInfo } from '@islet/sdk'
import type { Command } from 'commander'
import { allSnapshots } from '../../args/snapshot.ts'
import { command, type JsonFlag } from '../../command.ts'
import { connect } from '../../connect.ts'
import { formatAge, formatBytes } from '../../format.ts'
import { print, printJson, say } from '../../output.ts'
import { type Column, printTable } from '../../table.ts'

const COLUMNS: Column<SnapshotInfo>[] = [
  ['ID', ({ id }) => id],
  ['TAG', ({ tag }) => tag ?? '-'],
  ['NAME', ({ name }) => name ?? '-'],
  ['RUNTIME', ({ runtime }) => runtime],
  ['SIZE', ({ sizeBytes }) => (sizeBytes === null ? '-' : formatBytes(sizeBytes))],
  ['AGE', ({ createdAt }) => formatAge(createdAt)],
]

export function ls(): Command {
  return command('ls', 'List the snapshots, newest first.', 'islet snapshot ls')
    .alias('list')
    .option('-q, --quiet', 'only ids')
    .action(async (flags: JsonFlag & { quiet?: true }) => {
      const found: SnapshotInfo[] = []
      for await (const each of allSnapshots(connect())) found.push(each)
      if (flags.json) return printJson(found)
      if (flags.quiet) return found.forEach(({ id }) => void print(id))
      if (found.length === 0) return say('There are no snapshots. islet snapshot create SANDBOX makes one.')
      printTable(found, COLUMNS)
    })
}
