import type { ProcessInfo, Sandbox } from '@islet/sdk'
import type { Command } from 'commander'
import { withSandbox } from '../../args/find.ts'
import { sandboxCommand } from '../../command.ts'
import { formatAge, formatAwake, formatCommand } from '../../format.ts'
import { say } from '../../output.ts'
import { type Column, type ListFlags, printList } from '../../table.ts'

const columns: Column<ProcessInfo>[] = [
  ['ID', ({ id }) => id],
  ['PID', ({ pid }) => String(pid ?? '-')],
  ['STATUS', statusOf],
  ['USER', ({ user }) => user],
  ['KEEPS AWAKE', ({ keepAwake, result }) => (keepAwake && !result ? 'yes' : 'no')],
  ['AGE', ({ startedAt }) => formatAge(startedAt)],
  ['COMMAND', (process) => formatCommand(process.command)],
]

function statusOf({ outcome, jobStatus, result }: ProcessInfo): string {
  return result ? `${outcome} (${result.exitCode})` : jobStatus
}

export function ps(): Command {
  return sandboxCommand('ps', 'List the processes that were started in a sandbox.', 'islet ps dev --all')
    .option('-a, --all', 'include processes that ended')
    .option('-q, --quiet', 'print only ids')
    .action(
      withSandbox(async (sandbox: Sandbox, flags: ListFlags & { all?: true }) => {
        const found = await sandbox.exec.list({ limit: 1000, ...(flags.all ? {} : { status: 'running' }) })
        const none = `Nothing runs in ${sandbox.id}. islet ps --all also lists processes that ended.`
        printList(found, flags, { columns, none, key: ({ id }) => id })
        if (flags.json || flags.quiet) return
        const { status, awake } = await sandbox.getInfo()
        say(awake ? `Awake: ${formatAwake(awake)}.` : `It is ${status}.`)
      }),
    )
}
