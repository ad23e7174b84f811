import type { RestoredSandbox } from '@islet/sdk'
import type { Command } from 'commander'
import { findCheckpoint, findSandbox } from '../../args/find.ts'
import { type JsonFlag, sandboxCommand } from '../../command.ts'
import { connect } from '../../connect.ts'
import { printJson, say } from '../../output.ts'
import { type Column, printTable } from '../../table.ts'

type Service = RestoredSandbox['services'][number]

const OUTCOME_COLOURS = { failed: 'red', started: 'green', stopped: 'dim' } as const
const COLUMNS: Column<Service>[] = [
  ['SERVICE', ({ name }) => name],
  ['OUTCOME', ({ outcome }) => outcome, ({ outcome }) => OUTCOME_COLOURS[outcome]],
  ['REASON', ({ reason }) => reason ?? ''],
]

export function restore(): Command {
  return sandboxCommand(
    'restore',
    'Restore a sandbox to a checkpoint and print which of its services started.',
    'islet restore dev before-upgrade',
  )
    .argument('<checkpoint>', 'id, id prefix, or name')
    .action(async (text: string, name: string, flags: JsonFlag) => {
      const islet = connect()
      const sandbox = await findSandbox(islet, text)
      const checkpoint = await findCheckpoint(islet, sandbox.id, name)
      const restored = await sandbox.restoreCheckpoint(checkpoint.id)
      if (flags.json) return printJson(restored)
      say(`${sandbox.id} is restored to ${checkpoint.name}.`)
      if (restored.services.length > 0) printTable(restored.services, COLUMNS)
    })
}
