import type { Islet, Sandbox } from '@islet/sdk'
import { type Command, Option } from 'commander'
import {
  addKeepAwakeOptions,
  addSandboxOptions,
  type SandboxFlags,
  toCopyOptions,
  toCreateOptions,
} from '../../args/sandbox-options.ts'
import { command, type JsonFlag } from '../../command.ts'
import { connect } from '../../connect.ts'
import { UsageError } from '../../errors.ts'
import { print, printJson, say } from '../../output.ts'

interface CreateFlags extends SandboxFlags, JsonFlag {
  checkpoint?: string
  reuse?: true
}

export function create(): Command {
  const made = addSandboxOptions(
    command('create', 'Create a sandbox and print its id.', 'islet create --name dev --memory 2Gi --network'),
  )
    .addOption(
      new Option(
        '--checkpoint <id>',
        'start from this checkpoint; it is the default for other settings',
      ).conflicts(['runtime', 'snapshot', 'apt', 'npm', 'pip']),
    )
    .addOption(
      new Option('--reuse', 'if a sandbox has this --name, print its id and create none').conflicts(
        'checkpoint',
      ),
    )
  return addKeepAwakeOptions(made).action(async (flags: CreateFlags) => {
    const sandbox = await make(connect(), flags)
    if (flags.json) printJson(await sandbox.getInfo())
    else print(sandbox.id)
    if (sandbox.url && !flags.json) say(sandbox.url)
  })
}

async function make(islet: Islet, flags: CreateFlags): Promise<Sandbox> {
  if (flags.checkpoint !== undefined)
    return islet.checkpoints.createSandbox(flags.checkpoint, toCopyOptions(flags))
  const { name, ...options } = toCreateOptions(flags)
  if (!flags.reuse) return islet.sandboxes.create({ name, ...options })
  if (name === undefined) throw new UsageError('--reuse needs a name.', 'islet create --reuse --name dev')
  return islet.sandboxes.getOrCreate(name, options)
}
