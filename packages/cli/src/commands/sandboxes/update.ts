import type { Command } from 'commander'
import { addEnvOptions, type EnvFlags, toEnv } from '../../args/env.ts'
import { findSandbox } from '../../args/find.ts'
import { many, pair } from '../../args/parse.ts'
import {
  addKeepAwakeOptions,
  addNetworkOptions,
  addResourceOptions,
  type ResourceFlags,
  toNetwork,
  toResources,
} from '../../args/sandbox-options.ts'
import { type JsonFlag, sandboxCommand } from '../../command.ts'
import { connect } from '../../connect.ts'
import { UsageError } from '../../errors.ts'
import { printResult } from '../../output.ts'

interface UpdateFlags extends EnvFlags, ResourceFlags, JsonFlag {
  name?: string
  project?: string
  metadata?: Record<string, string>
  unset?: string[]
  keepAwake?: boolean
  network?: boolean
  port?: number | false
}

export function update(): Command {
  const made = sandboxCommand(
    'update',
    'Change the settings of a sandbox while it runs.',
    'islet update dev --memory 4Gi --unset DEBUG',
  )
    .option('--name <name>', "new name; '' removes it")
    .option('--project <name>', "new project; '' removes it")
    .option('--metadata <key=value>', 'replace the labels (repeat)', pair)
    .option('--unset <name>', 'remove a variable (repeat)', many)
  addNetworkOptions(addKeepAwakeOptions(made))
  return addResourceOptions(addEnvOptions(made)).action(action)
}

async function action(text: string, flags: UpdateFlags): Promise<void> {
  const { name, project, metadata, keepAwake } = flags
  const unset = (flags.unset ?? []).map((variable) => [variable, null] as const)
  const env = { ...toEnv(flags), ...Object.fromEntries(unset) }
  const resources = toResources(flags)
  const network = toNetwork(flags)
  const patch = {
    ...(name !== undefined && { name: name || null }),
    ...(project !== undefined && { project: project || null }),
    ...(metadata && { metadata }),
    ...(keepAwake !== undefined && { keepAwake }),
    ...(network && { network }),
    ...(Object.keys(env).length > 0 && { env }),
    ...(resources && { resources }),
  }
  if (Object.keys(patch).length === 0)
    throw new UsageError('There is nothing to change.', 'islet update --help')
  const info = await (await findSandbox(connect(), text)).update(patch)
  printResult(info, info.id, flags)
}
