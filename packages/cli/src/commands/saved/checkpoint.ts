import type { CheckpointInfo, Sandbox } from '@islet/sdk'
import type { Command } from 'commander'
import { removeEach } from '../../args/each.ts'
import { collect, findCheckpoint, findSandboxId, withSandbox } from '../../args/find.ts'
import { command, group, type JsonFlag, sandboxCommand } from '../../command.ts'
import { connect } from '../../connect.ts'
import { formatAge, formatSize } from '../../format.ts'
import { printResult } from '../../output.ts'
import { type Column, type ListFlags, printList } from '../../table.ts'
import { patch } from './patch.ts'

const ID: Column<CheckpointInfo> = ['ID', ({ id }) => id]
const COLUMNS: Column<CheckpointInfo>[] = [
  ['NAME', ({ name }) => name],
  ['SIZE', ({ sizeBytes }) => formatSize(sizeBytes)],
  ['FROZEN', ({ frozenMs }) => `${frozenMs.toFixed(1)} ms`],
  ['MEMORY', ({ memory }) => (memory ? 'yes' : 'no')],
  ['AGE', ({ createdAt }) => formatAge(createdAt)],
]

export function checkpoint(): Command {
  return group(
    'checkpoint',
    'Manage checkpoints: saved states of a sandbox, to restore or to create sandboxes from.',
    'islet checkpoint create dev before-upgrade\nislet restore dev before-upgrade',
    [create(), ls(), rm(), patch()],
  )
}

function create(): Command {
  return sandboxCommand(
    'create',
    'Create a checkpoint of a sandbox and print its id.',
    'islet checkpoint create dev before-upgrade',
  )
    .argument('<name>', 'unique among the checkpoints of the sandbox')
    .action(
      withSandbox(async (sandbox: Sandbox, name: string, flags: JsonFlag) => {
        const made = await sandbox.createCheckpoint(name)
        printResult(made, made.id, flags)
      }),
    )
}

function ls(): Command {
  return command(
    'ls',
    'List the checkpoints of a sandbox, oldest first; or all, also of removed sandboxes, newest first.',
    'islet checkpoint ls\nislet checkpoint ls dev',
  )
    .alias('list')
    .argument('[sandbox]', 'id, id prefix, or name; the whole id if the sandbox is removed')
    .option('-q, --quiet', 'print only ids')
    .action(async (text: string | undefined, flags: ListFlags) => {
      const islet = connect()
      const key = ({ id }: CheckpointInfo) => id
      if (text === undefined) {
        const found = await collect(islet.checkpoints.all({ limit: 1000 }))
        const columns: Column<CheckpointInfo>[] = [ID, ['SANDBOX', ({ sandboxId }) => sandboxId], ...COLUMNS]
        const none = 'There are no checkpoints. islet checkpoint create SANDBOX NAME creates one.'
        return printList(found, flags, { columns, none, key })
      }
      const id = await findSandboxId(islet, text)
      const none = `${id} has no checkpoints. islet checkpoint create ${id} NAME creates one.`
      printList(await islet.checkpoints.list(id), flags, { columns: [ID, ...COLUMNS], none, key })
    })
}

function rm(): Command {
  return sandboxCommand(
    'rm',
    'Remove checkpoints; files that other checkpoints need are kept.',
    'islet checkpoint rm dev before-upgrade',
  )
    .argument('<checkpoint...>', 'ids, id prefixes, or names')
    .action(async (text: string, names: string[], flags: JsonFlag) => {
      const islet = connect()
      const sandboxId = await findSandboxId(islet, text)
      const find = async (name: string) => (await findCheckpoint(islet, sandboxId, name)).id
      await removeEach(names, flags, (id) => islet.checkpoints.delete(id), find)
    })
}
