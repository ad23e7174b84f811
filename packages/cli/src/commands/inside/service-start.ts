import type { StartService } from '@islet/sdk'
import { type Command, Option } from 'commander'
import { addEnvOption } from '../../args/env.ts'
import { findSandbox } from '../../args/find.ts'
import { duration, integer } from '../../args/parse.ts'
import { addUserOptions } from '../../args/stdio.ts'
import { COMMAND } from '../../args/words.ts'
import { type JsonFlag, sandboxCommand } from '../../command.ts'
import { connect } from '../../connect.ts'
import { UsageError } from '../../errors.ts'
import { formatCommand } from '../../format.ts'
import { printResult } from '../../output.ts'

interface StartFlags extends JsonFlag {
  install?: string
  cwd?: string
  user?: string
  env?: Record<string, string>
  dotenv?: string
  port?: number
  strictPort?: true
  autostart: boolean
  restart?: StartService['restartPolicy']
  maxRestarts?: number
  restartDelay?: number
  stopTimeout?: number
  health?: string
  healthInterval?: number
  healthTimeout?: number
  healthDelay?: number
  keepAwake?: true
  wait?: true
  waitTimeout?: number
}

export function start(): Command {
  const made = sandboxCommand(
    'start',
    'Start a service. It replaces a stopped or failed service of the same name.',
    "islet service start dev web --install 'npm ci' --port 3000 --health / --restart always -- npm start",
  )
    .argument('<service>', 'name')
    .argument('<command...>', COMMAND)
    .option('--install <command>', 'run this command first and wait for its end')
  return addEnvOption(addUserOptions(made))
    .option('--dotenv <path>', 'read this .env file of the sandbox at every start')
    .option('-p, --port <port>', 'pass this port as PORT; if it is taken: the next free one', integer)
    .option('--strict-port', 'fail if the port is taken')
    .option('--no-autostart', 'do not start it when the sandbox starts again')
    .addOption(
      new Option('--restart <policy>', 'when to restart it').choices(['never', 'on-failure', 'always']),
    )
    .option('--max-restarts <count>', 'limit of restarts; 0 is no limit', integer)
    .option('--restart-delay <duration>', 'time before a restart; default: 1s', duration)
    .option('--stop-timeout <duration>', 'time between SIGTERM and SIGKILL; default: 10s', duration)
    .option('--health <path>', 'it is ready when GET of this path succeeds')
    .option('--health-interval <duration>', 'time between two checks; default: 5s', duration)
    .option('--health-timeout <duration>', 'timeout of a check; default: 3s', duration)
    .option('--health-delay <duration>', 'time before the first check', duration)
    .option('--keep-awake', 'keep the sandbox awake while it runs')
    .option('--wait', 'wait until it is ready')
    .option('--wait-timeout <duration>', 'wait at most this long; default: 1m', duration)
    .action(action)
}

async function action(text: string, name: string, words: string[], flags: StartFlags): Promise<void> {
  const spec = toSpec(name, words, flags)
  const sandbox = await findSandbox(connect(), text)
  const started = await sandbox.service.start(spec)
  const { wait, waitTimeout: timeout } = flags
  const waits = wait || timeout !== undefined
  printResult(waits ? await sandbox.service.waitFor(name, 'ready', { timeout }) : started, name, flags)
}

function toSpec(name: string, words: readonly string[], flags: StartFlags): StartService {
  const { health, healthInterval: interval, healthTimeout: timeout, healthDelay: delay } = flags
  if (words[0]!.startsWith('-'))
    throw new UsageError(`${words[0]} is not a command.`, 'Put -- between the options and the command.')
  if (health === undefined && [interval, timeout, delay].some((value) => value !== undefined))
    throw new UsageError('There is no health check to time.', 'Add --health /path.')
  return {
    name,
    start: words.length === 1 ? words[0]! : formatCommand(words),
    install: flags.install,
    path: flags.cwd,
    user: flags.user,
    environment: flags.env,
    envFile: flags.dotenv,
    port: flags.port,
    strictPort: flags.strictPort,
    autostart: flags.autostart ? undefined : false,
    restartPolicy: flags.restart,
    maxRestarts: flags.maxRestarts,
    restartDelay: flags.restartDelay,
    stopTimeout: flags.stopTimeout,
    keepAwake: flags.keepAwake,
    healthCheck: health === undefined ? undefined : { path: health, interval, timeout, delay },
  }
}
