import type { Command } from 'commander'
import { findSandbox } from '../../args/sandbox.ts'
import { command, type JsonFlag } from '../../command.ts'
import { connect } from '../../connect.ts'
import { print, printJson } from '../../output.ts'

export function create(): Command {
  return command(
    'create',
    'Save a sandbox as it is now and print the id of the checkpoint.',
    'islet checkpoint create dev before-upgrade',
  )
    .argument('<sandbox>', 'id, beginning of an id, or name')
    .argument('<name>', 'no other checkpoint of the sandbox has it')
    .action(async (text: string, name: string, flags: JsonFlag) => {
      const sandbox = await findSandbox(connect(), text)
      const checkpoint = await sandbox.createCheckpoint(name)
      if (flags.json) printJson(checkpoint)
      else print(checkpoint.id)
    })
}
