import { type Command, Option } from 'commander'
import {
  addSandboxOptions,
  type SandboxFlags,
  toCopyOptions,
  toCreateOptions,
} from '../args/sandbox-options.ts'
import { command, type JsonFlag } from '../command.ts'
import { connect } from '../connect.ts'
import { print, printJson } from '../output.ts'

export function create(): Command {
  return addSandboxOptions(
    command('create', 'Make a sandbox and print its id.', 'islet create --name dev --memory 2Gi --network'),
  )
    .addOption(
      new Option(
        '--checkpoint <id>',
        'begin as this checkpoint; what is not given is as it was there',
      ).conflicts('runtime'),
    )
    .addOption(
      new Option(
        '--snapshot <snapshot>',
        'begin as the snapshot of this id or tag; what is not given is as it was there',
      ).conflicts(['runtime', 'checkpoint']),
    )
    .action(async (flags: SandboxFlags & JsonFlag & { checkpoint?: string; snapshot?: string }) => {
      const islet = connect()
      const sandbox =
        flags.checkpoint === undefined
          ? await islet.sandboxes.create({ snapshot: flags.snapshot, ...toCreateOptions(flags) })
          : await islet.checkpoints.createSandbox(flags.checkpoint, toCopyOptions(flags))
      if (flags.json) printJson(await sandbox.getInfo())
      else print(sandbox.id)
    })
}
