import type { Command } from 'commander'
import { addEnvOptions, type EnvFlags, toEnv } from '../args/env.ts'
import { many, pair } from '../args/parse.ts'
import { addResourceOptions, type ResourceFlags, toResources } from '../args/resources.ts'
import { findSandbox } from '../args/sandbox.ts'
import { command, type JsonFlag } from '../command.ts'
import { connect } from '../connect.ts'
import { UsageError } from '../errors.ts'
import { print, printJson } from '../output.ts'

interface UpdateFlags extends EnvFlags, ResourceFlags, JsonFlag {
  name?: string
  project?: string
  metadata?: Record<string, string>
  unset?: string[]
  keepAwake?: boolean
  network?: boolean
}

export function update(): Command {
  const made = command(
    'update',
    'Change a sandbox while it runs.',
    'islet update dev --memory 4Gi --unset DEBUG',
  )
    .argument('<sandbox>', 'id, beginning of an id, or name')
    .option('--name <name>', "its new name; '' takes it away")
    .option('--project <name>', "its new project; '' takes it away")
    .option('--metadata <key=value>', 'replace the labels (repeat)', pair)
    .option('--unset <name>', 'take a variable away (repeat)', many)
    .option('--keep-awake', 'it is never idle')
    .option('--no-keep-awake', 'it hibernates when it is idle')
    .option('--network', 'let it reach the network')
    .option('--no-network', 'do not')
  return addResourceOptions(addEnvOptions(made)).action(async (text: string, flags: UpdateFlags) => {
    const { name, project, metadata, keepAwake, network } = flags
    const unset = (flags.unset ?? []).map((variable) => [variable, null] as const)
    const env = { ...toEnv(flags), ...Object.fromEntries(unset) }
    const patch = {
      ...(name !== undefined && { name: name || null }),
      ...(project !== undefined && { project: project || null }),
      ...(metadata && { metadata }),
      ...(keepAwake !== undefined && { keepAwake }),
      ...(network !== undefined && { network: { enabled: network } }),
      ...(Object.keys(env).length > 0 && { env }),
      ...(toResources(flags) && { resources: toResources(flags) }),
    }
    if (Object.keys(patch).length === 0) throw new UsageError('Nothing to change.', 'islet update --help')
    const info = await (await findSandbox(connect(), text)).update(patch)
    if (flags.json) printJson(info)
    else print(info.id)
  })
}
