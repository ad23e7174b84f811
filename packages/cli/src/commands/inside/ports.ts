import type { ListeningPort, Sandbox } from '@islet/sdk'
import type { Command } from 'commander'
import { withSandbox } from '../../args/find.ts'
import { sandboxCommand } from '../../command.ts'
import { type Column, type ListFlags, printList } from '../../table.ts'

const columns: Column<ListeningPort>[] = [
  ['PORT', ({ port }) => String(port)],
  ['ADDRESS', ({ address }) => address],
  ['UID', ({ uid }) => String(uid)],
  ['PID', ({ pid }) => String(pid ?? '-')],
]

export function ports(): Command {
  return sandboxCommand('ports', 'List the ports that programs in a sandbox listen on.', 'islet ports dev')
    .option('-q, --quiet', 'print only port numbers, each once')
    .action(
      withSandbox(async (sandbox: Sandbox, flags: ListFlags) => {
        const none = `Nothing listens in ${sandbox.id}.`
        printList(await sandbox.ports(), flags, { columns, none, key: ({ port }) => String(port) })
      }),
    )
}
