import type { Command } from 'commander'
import { addSandboxOptions, type SandboxFlags, toCreateOptions } from '../args/sandbox-options.ts'
import { command, type JsonFlag } from '../command.ts'
import { connect } from '../connect.ts'
import { print, printJson } from '../output.ts'

export function create(): Command {
  return addSandboxOptions(
    command('create', 'Make a sandbox and print its id.', 'islet create --name dev --memory 2Gi --network'),
  ).action(async (flags: SandboxFlags & JsonFlag) => {
    const sandbox = await connect().sandboxes.create(toCreateOptions(flags))
    if (flags.json) printJson(await sandbox.getInfo())
    else print(sandbox.id)
  })
}
