import type { PatchRun } from '@islet/sdk'
import type { Command } from 'commander'
import { findSandbox } from '../../../args/sandbox.ts'
import { command, type JsonFlag } from '../../../command.ts'
import { connect } from '../../../connect.ts'
import { formatAge } from '../../../format.ts'
import { printJson, say } from '../../../output.ts'
import { type Column, printTable } from '../../../table.ts'

const COLUMNS: Column<PatchRun>[] = [
  ['PATCH', ({ patchId }) => patchId],
  ['STATUS', ({ status, exitCode }) => (exitCode === null ? status : `${status} (${exitCode})`)],
  ['AGE', ({ at }) => (at === null ? '-' : formatAge(at))],
  ['REASON', (run) => reasonOf(run) ?? '-'],
]

/** Where nothing else is known, the last that it said. */
function reasonOf({ status, reason, output }: PatchRun): string | undefined {
  if (reason !== null || status !== 'failed') return reason ?? undefined
  const line = output.trimEnd().split('\n').at(-1)
  return line?.replace(/\p{Cc}/gu, ' ').slice(0, 100) || undefined
}

export function runs(): Command {
  return command(
    'runs',
    'What became of the patches in a sandbox, in their order; --json has what they printed.',
    'islet checkpoint patch runs dev',
  )
    .argument('<sandbox>', 'id, beginning of an id, or name')
    .action(async (text: string, flags: JsonFlag) => {
      const sandbox = await findSandbox(connect(), text)
      const found = await sandbox.listPatches()
      if (flags.json) return printJson(found)
      if (found.length === 0) return say(`${sandbox.id} has no patches.`)
      printTable(found, COLUMNS)
    })
}
