import { SANDBOX_STATUSES } from '@islet/contract/client'
import type { SandboxInfo, SandboxStatus } from '@islet/sdk'
import { type Command, Option } from 'commander'
import { collect } from '../../args/find.ts'
import { many } from '../../args/parse.ts'
import { command } from '../../command.ts'
import { connect } from '../../connect.ts'
import { formatAge, formatBytes, formatCpu, formatLeft, formatTimeout } from '../../format.ts'
import type { Colour } from '../../output.ts'
import { type Column, type ListFlags, printList } from '../../table.ts'

interface LsFlags extends ListFlags {
  all?: true
  status?: SandboxStatus
  project?: string
  metadata?: string[]
}

const COLOURS: Partial<Record<SandboxStatus, Colour>> = { running: 'green', failed: 'red', stopped: 'dim' }
const columns: Column<SandboxInfo>[] = [
  ['ID', ({ id }) => id],
  ['NAME', ({ name }) => name ?? '-'],
  ['STATUS', statusOf, ({ status }) => COLOURS[status] ?? 'yellow'],
  ['RUNTIME', ({ runtime }) => runtime],
  ['CPU', ({ resources }) => formatCpu(resources.cpuMillis)],
  ['MEMORY', ({ resources }) => formatBytes(resources.memoryBytes)],
  ['IDLE', idleOf],
  ['AGE', ({ createdAt }) => formatAge(createdAt)],
]

export function ls(): Command {
  return command('ls', 'List sandboxes, newest first.', 'islet ls --metadata team=blue --quiet')
    .alias('list')
    .option('-a, --all', 'include removed sandboxes')
    .addOption(new Option('--status <status>', 'only with this status').choices([...SANDBOX_STATUSES]))
    .option('--project <name>', 'only of this project')
    .option('--metadata <key=value>', 'only with this label (repeat)', many)
    .option('-q, --quiet', 'print only ids')
    .action(async (flags: LsFlags) => {
      const { project, metadata } = flags
      const status = flags.status ?? (flags.all ? 'all' : undefined)
      const found = await collect(connect().sandboxes.all({ status, project, metadata }))
      const none = 'There are no sandboxes. islet create creates one.'
      printList(found, flags, { columns, none, key: ({ id }) => id })
    })
}

/** With the time until a paused sandbox is removed. */
function statusOf({ status, terminatesAt }: SandboxInfo): string {
  return terminatesAt ? `${status} (${formatLeft(terminatesAt)} left)` : status
}

function idleOf({ timeouts: { idleMs, onIdle } }: SandboxInfo): string {
  const after = formatTimeout(idleMs)
  return idleMs > 0 && onIdle === 'kill' ? `${after}, kill` : after
}
