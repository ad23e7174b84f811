import type { Command } from 'commander'
import { findCheckpoint } from '../../args/checkpoint.ts'
import { findSandboxId } from '../../args/sandbox.ts'
import { command, type JsonFlag } from '../../command.ts'
import { connect } from '../../connect.ts'
import { print, printJson } from '../../output.ts'

export function rm(): Command {
  return command(
    'rm',
    'Forget checkpoints; what others are built on stays.',
    'islet checkpoint rm dev before-upgrade',
  )
    .argument('<sandbox>', 'id, beginning of an id, or name')
    .argument('<checkpoint...>', 'ids, beginnings of ids, or names')
    .action(async (text: string, names: string[], flags: JsonFlag) => {
      const islet = connect()
      const sandboxId = await findSandboxId(islet, text)
      const removed: string[] = []
      for (const name of names) {
        const { id } = await findCheckpoint(islet, sandboxId, name)
        await islet.checkpoints.delete(id)
        removed.push(id)
        if (!flags.json) print(id)
      }
      if (flags.json) printJson({ removed })
    })
}
