import type { OverlayInfo } from '@islet/sdk'
import type { Command } from 'commander'
import { findSandbox } from '../../args/sandbox.ts'
import { command, type JsonFlag } from '../../command.ts'
import { connect } from '../../connect.ts'
import { formatAge } from '../../format.ts'
import { printJson, say } from '../../output.ts'
import { type Column, printTable } from '../../table.ts'

const COLUMNS: Column<OverlayInfo>[] = [
  ['ID', ({ id }) => id],
  ['STATUS', ({ copyStatus }) => copyStatus],
  ['STRATEGY', ({ strategy }) => strategy],
  ['FILES', ({ stats }) => String(stats.copiedFiles)],
  ['LINKS', ({ stats }) => String(stats.linkedDirs)],
  ['AGE', ({ createdAt }) => formatAge(createdAt)],
  ['SOURCE', ({ source }) => source],
  ['TARGET', ({ target }) => target],
]

export function ls(): Command {
  return command('ls', 'List the overlays of a sandbox.', 'islet overlay ls dev')
    .alias('list')
    .argument('<sandbox>', 'id, beginning of an id, or name')
    .action(async (text: string, flags: JsonFlag) => {
      const sandbox = await findSandbox(connect(), text)
      const found = await sandbox.files.overlay.list()
      if (flags.json) return printJson(found)
      if (found.length === 0)
        return say(`${sandbox.id} has no overlays. islet overlay create --help says how to make one.`)
      printTable(found, COLUMNS)
    })
}
