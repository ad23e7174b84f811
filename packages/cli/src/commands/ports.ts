import type { ListeningPort } from '@islet/sdk'
import type { Command } from 'commander'
import { findSandbox } from '../args/sandbox.ts'
import { command, type JsonFlag } from '../command.ts'
import { connect } from '../connect.ts'
import { print, printJson, say } from '../output.ts'
import { type Column, printTable } from '../table.ts'

interface PortsFlags extends JsonFlag {
  quiet?: true
}

const COLUMNS: Column<ListeningPort>[] = [
  ['PORT', ({ port }) => String(port)],
  ['ADDRESS', ({ address }) => address],
  ['UID', ({ uid }) => String(uid)],
  ['PID', ({ pid }) => String(pid ?? '-')],
]

export function ports(): Command {
  return command('ports', 'List what listens in a sandbox.', 'islet ports dev')
    .argument('<sandbox>', 'id, beginning of an id, or name')
    .option('-q, --quiet', 'only the numbers, each once')
    .action(async (text: string, flags: PortsFlags) => {
      const sandbox = await findSandbox(connect(), text)
      const found = await sandbox.ports()
      if (flags.json) return printJson(found)
      if (flags.quiet)
        return new Set(found.map(({ port }) => port)).forEach((port) => void print(String(port)))
      if (found.length === 0) return say(`Nothing listens in ${sandbox.id}.`)
      printTable(found, COLUMNS)
    })
}
