import type { ServiceInfo } from '@islet/sdk'
import type { Command } from 'commander'
import { findSandbox } from '../../args/sandbox.ts'
import { command, type JsonFlag } from '../../command.ts'
import { connect } from '../../connect.ts'
import { formatAge } from '../../format.ts'
import { print, printJson, say } from '../../output.ts'
import { type Column, printTable } from '../../table.ts'
import { statusColour } from './service-command.ts'

const COLUMNS: Column<ServiceInfo>[] = [
  ['NAME', ({ name }) => name],
  ['STATUS', ({ status }) => status, statusColour],
  ['PORT', ({ port }) => String(port ?? '-')],
  ['URL', ({ url }) => url ?? '-'],
  ['RESTARTS', ({ restartCount }) => String(restartCount)],
  ['AGE', ({ createdAt }) => formatAge(createdAt)],
  ['COMMAND', ({ start }) => start],
]

export function ls(): Command {
  return command('ls', 'List the services of a sandbox.', 'islet service ls dev')
    .alias('list')
    .argument('<sandbox>', 'id, beginning of an id, or name')
    .option('-q, --quiet', 'only names')
    .action(async (text: string, flags: JsonFlag & { quiet?: true }) => {
      const sandbox = await findSandbox(connect(), text)
      const found = await sandbox.service.list()
      if (flags.json) return printJson(found)
      if (flags.quiet) return found.forEach(({ name }) => void print(name))
      if (found.length === 0)
        return say(`${sandbox.id} has no services. islet service start --help shows how to start one.`)
      printTable(found, COLUMNS)
    })
}
