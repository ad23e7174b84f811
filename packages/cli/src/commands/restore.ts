import type { RestoredSandbox } from '@islet/sdk'
import type { Command } from 'commander'
import { findCheckpoint } from '../args/checkpoint.ts'
import { findSandbox } from '../args/sandbox.ts'
import { command, type JsonFlag } from '../command.ts'
import { connect } from '../connect.ts'
import { printJson, say } from '../output.ts'
import { type Column, printTable } from '../table.ts'

type Service = RestoredSandbox['services'][number]

const COLUMNS: Column<Service>[] = [
  ['SERVICE', ({ name }) => name],
  [
    'OUTCOME',
    ({ outcome }) => outcome,
    ({ outcome }) => (outcome === 'failed' ? 'red' : outcome === 'started' ? 'green' : 'dim'),
  ],
  ['REASON', ({ reason }) => reason ?? ''],
]

export function restore(): Command {
  return command(
    'restore',
    'Take a sandbox back to a checkpoint, and print what became of its services.',
    'islet restore dev before-upgrade',
  )
    .argument('<sandbox>', 'id, beginning of an id, or name')
    .argument('<checkpoint>', 'id, beginning of an id, or name')
    .action(async (text: string, name: string, flags: JsonFlag) => {
      const islet = connect()
      const sandbox = await findSandbox(islet, text)
      const checkpoint = await findCheckpoint(islet, sandbox.id, name)
      const restored = await sandbox.restoreCheckpoint(checkpoint.id)
      if (flags.json) return printJson(restored)
      say(`${sandbox.id} is as it was at ${checkpoint.name}.`)
      if (restored.services.length > 0) printTable(restored.services, COLUMNS)
    })
}
