// The settings of a sandbox as options: the same for `create`, `run`, `fork`, `update` and `timeout`.
import { IDLE_ACTIONS } from '@islet/contract/client'
import type { CreateOptions, ForkOptions, Timeouts } from '@islet/sdk'
import { type Command, Option } from 'commander'
import { showImageSteps } from '../progress.ts'
import { addEnvOptions, type EnvFlags, toEnv } from './env.ts'
import { cpu, integer, lasting, list, pair, size } from './parse.ts'

export interface SandboxFlags extends CopyFlags {
  runtime?: string
  apt?: string[]
  npm?: string[]
  pip?: string[]
  snapshot?: string
}

/** For a sandbox made from another or from a checkpoint, which is the default for every setting. */
export interface CopyFlags extends EnvFlags, ResourceFlags, SandboxTimeoutFlags {
  name?: string
  project?: string
  metadata?: Record<string, string>
  network?: boolean
  port?: number | false
  user?: string
  cwd?: string
  keepAwake?: boolean
}

export interface ResourceFlags {
  memory?: string
  cpu?: string
  disk?: string
  pids?: number
}

export interface TimeoutFlags {
  idle?: number
  execution?: number
  paused?: number
  onIdle?: Timeouts['onIdle']
}

interface SandboxTimeoutFlags {
  idleTimeout?: number
  executionTimeout?: number
  pausedTimeout?: number
  onIdle?: Timeouts['onIdle']
}

export function addSandboxOptions(command: Command): Command {
  command
    .option('-r, --runtime <name>', 'what the sandbox runs on; islet runtimes lists the names')
    .addOption(
      new Option(
        '--snapshot <snapshot>',
        'start from the snapshot with this id or tag; it is the default for other settings',
      ).conflicts(['runtime', 'apt', 'npm', 'pip']),
    )
    .option('--apt <packages>', 'install Debian packages first, like jq,ffmpeg (repeat)', list)
    .option('--npm <packages>', 'install npm packages first, like cowsay@^1.6 (repeat)', list)
    .option('--pip <packages>', 'install Python packages first, like six==1.17.0 (repeat)', list)
  return addCopyOptions(command)
}

export function addCopyOptions(command: Command): Command {
  command
    .option('--name <name>', 'name of the sandbox')
    .option('--project <name>', 'project of the sandbox')
    .option('--metadata <key=value>', 'add a label (repeat)', pair)
  addNetworkOptions(command)
    .option('-u, --user <name>', 'user that runs commands')
    .option('-w, --cwd <path>', 'directory that commands start in; created if missing')
  return addTimeoutOptions(addResourceOptions(addEnvOptions(command)), '-timeout')
}

export function addNetworkOptions(command: Command): Command {
  return command
    .option('--network', 'allow network access')
    .option('--no-network', 'deny network access')
    .option('--port <number>', 'give this port of the sandbox a URL', integer)
    .option('--no-port', 'give no port a URL')
}

export function addKeepAwakeOptions(command: Command): Command {
  return command
    .option('--keep-awake', 'never count as idle')
    .option('--no-keep-awake', 'hibernate when idle')
}

export function addResourceOptions(command: Command): Command {
  return command
    .option('--memory <size>', 'memory limit, like 512Mi', size)
    .option('--cpu <cores>', 'CPU limit, like 0.5 or 500m', cpu)
    .option('--disk <size>', 'disk limit, like 2Gi', size)
    .option('--pids <count>', 'limit of processes and threads', integer)
}

/** The suffix keeps them apart from other timeouts of a command. */
export function addTimeoutOptions(command: Command, suffix: '' | '-timeout' = ''): Command {
  return command
    .option(`--idle${suffix} <duration>`, 'act after this idle time, like 10m; 0 is never', lasting)
    .option(`--execution${suffix} <duration>`, 'default timeout of commands, like 2m; 0 is none', lasting)
    .option(`--paused${suffix} <duration>`, 'remove it after this time paused, like 24h; 0 is never', lasting)
    .addOption(new Option('--on-idle <action>', 'what to do when it is idle').choices([...IDLE_ACTIONS]))
}

export function toCreateOptions(flags: SandboxFlags): CreateOptions {
  const { runtime, snapshot, apt: dependencies, npm: packages, pip } = flags
  const onProgress = showImageSteps()
  return { runtime, snapshot, dependencies, packages, pip, onProgress, ...toCopyOptions(flags) }
}

export function toCopyOptions(flags: CopyFlags): Omit<ForkOptions, 'signal'> {
  const { idleTimeout: idle, executionTimeout: execution, pausedTimeout: paused, onIdle } = flags
  return {
    name: flags.name,
    project: flags.project,
    metadata: flags.metadata,
    env: toEnv(flags),
    resources: toResources(flags),
    network: toNetwork(flags),
    user: flags.user,
    workdir: flags.cwd,
    timeout: toTimeouts({ idle, execution, paused, onIdle }),
    keepAwake: flags.keepAwake,
  }
}

export function toNetwork({ network, port }: Pick<CopyFlags, 'network' | 'port'>) {
  return orNone({ enabled: network, port: port === false ? null : port })
}

export function toResources({ memory, cpu, disk, pids }: ResourceFlags) {
  return orNone({ memory, cpu, disk, pids })
}

export function toTimeouts({ idle, execution, paused, onIdle }: TimeoutFlags): Timeouts | undefined {
  return orNone({ idle, execution, paused, onIdle })
}

/** Undefined if none of the options was given. */
function orNone<Options extends object>(options: Options): Options | undefined {
  return Object.values(options).some((value) => value !== undefined) ? options : undefined
}
