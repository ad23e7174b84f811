import type { Command } from 'commander'
import { findSandboxId } from '../../args/sandbox.ts'
import { command, type JsonFlag } from '../../command.ts'
import { connect } from '../../connect.ts'
import { UsageError } from '../../errors.ts'
import { print, printJson } from '../../output.ts'

interface CreateFlags extends JsonFlag {
  checkpoint?: string
  name?: string
  tag?: string
  description?: string
}

export function create(): Command {
  return command(
    'create',
    'Publish a sandbox as it is now, or a checkpoint, and print the id of the snapshot.',
    'islet snapshot create dev --tag with-deps\nislet snapshot create --checkpoint ckp-4f… --name nightly',
  )
    .argument('[sandbox]', 'id, beginning of an id, or name')
    .option('--checkpoint <id>', 'of this checkpoint, in place of a sandbox')
    .option('--name <name>', 'a name')
    .option('--tag <tag>', 'to find it by; if another snapshot has it, it moves here')
    .option('--description <text>', 'what it is')
    .action(async (text: string | undefined, flags: CreateFlags) => {
      const { checkpoint, name, tag, description } = flags
      if ((text === undefined) === (checkpoint === undefined))
        throw new UsageError('Name either a sandbox or a checkpoint.', 'islet snapshot create dev --tag v1')
      const islet = connect()
      const of = checkpoint === undefined ? { sandbox: await findSandboxId(islet, text!) } : { checkpoint }
      const made = await islet.snapshots.create(of, { name, tag, description })
      if (flags.json) printJson(made)
      else print(made.id)
    })
}
