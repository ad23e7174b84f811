import type { ProcessInfo } from '@islet/sdk'
import type { Command } from 'commander'
import { findSandbox } from '../args/sandbox.ts'
import { command, type JsonFlag } from '../command.ts'
import { connect } from '../connect.ts'
import { formatAge, formatCommand } from '../format.ts'
import { print, printJson, say } from '../output.ts'
import { type Column, printTable } from '../table.ts'

interface PsFlags extends JsonFlag {
  all?: true
  quiet?: true
}

const COLUMNS: Column<ProcessInfo>[] = [
  ['ID', ({ id }) => id],
  ['PID', ({ pid }) => String(pid ?? '-')],
  ['STATUS', ({ jobStatus, result }) => (result ? `${jobStatus} (${result.exitCode})` : jobStatus)],
  ['USER', ({ user }) => user],
  ['AGE', ({ startedAt }) => formatAge(startedAt)],
  ['COMMAND', (process) => formatCommand(process.command)],
]

export function ps(): Command {
  return command('ps', 'List the processes started in a sandbox.', 'islet ps dev --all')
    .argument('<sandbox>', 'id, beginning of an id, or name')
    .option('-a, --all', 'also the ones that ended')
    .option('-q, --quiet', 'only ids')
    .action(async (text: string, flags: PsFlags) => {
      const sandbox = await findSandbox(connect(), text)
      const found = await sandbox.exec.list({ limit: 1000, ...(flags.all ? {} : { status: 'running' }) })
      if (flags.json) return printJson(found)
      if (flags.quiet) return found.forEach(({ id }) => void print(id))
      if (found.length === 0)
        return say(`Nothing runs in ${sandbox.id}. islet ps --all also shows what ended.`)
      printTable(found, COLUMNS)
    })
}
