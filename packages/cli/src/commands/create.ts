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
      ).conflicts(['runtime', 'snapshot']),
    )
    .option('--keep-awake', 'it is never idle')
    .option('--no-keep-awake', 'it hibernates when it is idle')
    .action(async (flags: SandboxFlags & JsonFlag & { checkpoint?: string }) => {
      const islet = connect()
      const sandbox =
        flags.checkpoint === undefined
          ? await islet.sandboxes.create(toCreateOptions(flags))
          : await islet.checkpoints.createSandbox(flags.checkpoint, toCopyOptions(flags))
      if (flags.json) printJson(await sandbox.getInfo())
      else print(sandbox.id)
    })
}
