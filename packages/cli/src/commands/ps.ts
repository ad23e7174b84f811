import type { ProcessInfo } from '@islet/sdk'
import type { Command } from 'commander'
import { findSandbox } from '../args/sandbox.ts'
import { command, type JsonFlag } from '../command.ts'
import { connect } from '../connect.ts'
import { formatAge, formatAwake, formatCommand } from '../format.ts'
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
  ['KEEPS AWAKE', ({ keepAwake, result }) => (keepAwake && !result ? 'yes' : 'no')],
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
      if (found.length === 0) say(`Nothing runs in ${sandbox.id}. islet ps --all also shows what ended.`)
      else printTable(found, COLUMNS)
      const { status, awake } = await sandbox.getInfo()
      say(awake ? `Awake: ${formatAwake(awake)}.` : `It is ${status}.`)
    })
}
