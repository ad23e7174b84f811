import { SANDBOX_STATUSES } from '@islet/contract/client'
import type { SandboxInfo, SandboxStatus } from '@islet/sdk'
import { type Command, Option } from 'commander'
import { many } from '../args/parse.ts'
import { command, type JsonFlag } from '../command.ts'
import { connect } from '../connect.ts'
import { formatAge, formatBytes, formatCpu, formatLeft, formatTimeout } from '../format.ts'
import { type Colour, print, printJson, say } from '../output.ts'
import { type Column, printTable } from '../table.ts'

interface LsFlags extends JsonFlag {
  all?: true
  status?: SandboxStatus
  project?: string
  metadata?: string[]
  quiet?: true
}

const COLOURS: Partial<Record<SandboxStatus, Colour>> = { running: 'green', failed: 'red', stopped: 'dim' }
const COLUMNS: Column<SandboxInfo>[] = [
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
    .option('-a, --all', 'also the ones that are gone')
    .addOption(new Option('--status <status>', 'only these').choices([...SANDBOX_STATUSES]))
    .option('--project <name>', 'only those of a project')
    .option('--metadata <key=value>', 'only those with this label (repeat)', many)
    .option('-q, --quiet', 'only ids')
    .action(async (flags: LsFlags) => {
      const { project, metadata } = flags
      const status = flags.status ?? (flags.all ? 'all' : undefined)
      const found: SandboxInfo[] = []
      for await (const one of connect().sandboxes.all({ status, project, metadata })) found.push(one)
      if (flags.json) return printJson(found)
      if (flags.quiet) return found.forEach(({ id }) => void print(id))
      if (found.length === 0) return say('There are no sandboxes. islet create makes one.')
      printTable(found, COLUMNS)
    })
}

/** A paused one may have an end. */
function statusOf({ status, terminatesAt }: SandboxInfo): string {
  return terminatesAt ? `${status} (${formatLeft(terminatesAt)} left)` : status
}

function idleOf({ timeouts: { idleMs, onIdle } }: SandboxInfo): string {
  const after = formatTimeout(idleMs)
  return idleMs > 0 && onIdle === 'kill' ? `${after}, kill` : after
}
