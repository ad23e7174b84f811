// What a new sandbox may be given, the same for `create`, `run` and `fork`.

import type { CreateOptions, ForkOptions } from '@islet/sdk'
import { type Command, Option } from 'commander'
import { addEnvOptions, type EnvFlags, toEnv } from './env.ts'
import { pair } from './parse.ts'
import { addResourceOptions, type ResourceFlags, toResources } from './resources.ts'
import { addSandboxTimeoutOptions, type SandboxTimeoutFlags, toSandboxTimeouts } from './timeouts.ts'

export interface SandboxFlags extends CopyFlags {
  runtime?: string
  snapshot?: string
}

/** Of one that begins as another was: what is not given is as it was there. */
export interface CopyFlags extends EnvFlags, ResourceFlags, SandboxTimeoutFlags {
  name?: string
  project?: string
  metadata?: Record<string, string>
  network?: boolean
  user?: string
  cwd?: string
  keepAwake?: boolean
}

export function addSandboxOptions(command: Command): Command {
  const from = 'begin as the snapshot of this id or tag; what is not given is as it was there'
  return addCopyOptions(
    command
      .option('-r, --runtime <name>', 'what it runs on; islet runtimes lists the names')
      .addOption(new Option('--snapshot <snapshot>', from).conflicts('runtime')),
  )
}

export function addCopyOptions(command: Command): Command {
  addEnvOptions(
    command
      .option('--name <name>', 'a name to find it by')
      .option('--project <name>', 'the project it belongs to')
      .option('--metadata <key=value>', 'a label (repeat)', pair)
      .option('--network', 'let it reach the network')
      .option('--no-network', 'do not')
      .option('-u, --user <name>', 'who commands run as')
      .option('-w, --cwd <path>', 'where commands start; made if missing'),
  )
  return addSandboxTimeoutOptions(addResourceOptions(command))
}

export function toCreateOptions(flags: SandboxFlags): CreateOptions {
  return { runtime: flags.runtime, snapshot: flags.snapshot, ...toCopyOptions(flags) }
}

export function toCopyOptions(flags: CopyFlags): Omit<ForkOptions, 'signal'> {
  return {
    name: flags.name,
    project: flags.project,
    metadata: flags.metadata,
    env: toEnv(flags),
    resources: toResources(flags),
    network: flags.network === undefined ? undefined : { enabled: flags.network },
    user: flags.user,
    workdir: flags.cwd,
    timeout: toSandboxTimeouts(flags),
    keepAwake: flags.keepAwake,
  }
}
