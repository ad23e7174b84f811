import type { StartService } from '@islet/sdk'
import { type Command, Option } from 'commander'
import { variable } from '../../args/env.ts'
import { duration, integer } from '../../args/parse.ts'
import { findSandbox } from '../../args/sandbox.ts'
import { quote } from '../../args/words.ts'
import type { JsonFlag } from '../../command.ts'
import { connect } from '../../connect.ts'
import { UsageError } from '../../errors.ts'
import { printService, serviceCommand } from './service-command.ts'

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
  return serviceCommand(
    'start',
    'Start a service; one of that name that is stopped or failed is replaced.',
    "islet service start dev web --install 'npm ci' --port 3000 --health / --restart always -- npm start",
  )
    .argument('<command...>', 'one word is shell text; several are a program and its arguments')
    .option('--install <command>', 'run this to its end first')
    .option('-w, --cwd <path>', 'where it runs; default: the working directory of the sandbox')
    .option('-u, --user <name>', 'who it runs as')
    .option('-e, --env <name[=value]>', 'set a variable; without a value: as it is here (repeat)', variable)
    .option('--dotenv <path>', 'a .env file of the sandbox, read at every start')
    .option('-p, --port <port>', 'given to it as PORT; taken: the next free one', integer)
    .option('--strict-port', 'fail when the port is taken')
    .option('--no-autostart', 'do not start it again when the sandbox starts again')
    .addOption(new Option('--restart <policy>', 'when it ends').choices(['never', 'on-failure', 'always']))
    .option('--max-restarts <count>', 'at most so often; 0: no bound', integer)
    .option('--restart-delay <duration>', 'between its end and the restart; default: 1s', duration)
    .option('--stop-timeout <duration>', 'after SIGTERM, before SIGKILL; default: 10s', duration)
    .option('--health <path>', 'ready only when GET of this path succeeds')
    .option('--health-interval <duration>', 'between two checks; default: 5s', duration)
    .option('--health-timeout <duration>', 'of one check; default: 3s', duration)
    .option('--health-delay <duration>', 'before the first check', duration)
    .option('--keep-awake', 'the sandbox is not idle while it is kept running')
    .option('--wait', 'until it is ready')
    .option('--wait-timeout <duration>', 'no longer than this; default: 1m', duration)
    .action(async (text: string, name: string, words: string[], flags: StartFlags) => {
      const spec = toSpec(name, words, flags)
      const sandbox = await findSandbox(connect(), text)
      const started = await sandbox.service.start(spec)
      const waits = flags.wait || flags.waitTimeout !== undefined
      const timeout = flags.waitTimeout
      const service = waits ? await sandbox.service.waitFor(name, 'ready', { timeout }) : started
      printService(service, flags)
    })
}

function toSpec(name: string, words: readonly string[], flags: StartFlags): StartService {
  const { health, healthInterval: interval, healthTimeout: timeout, healthDelay: delay } = flags
  if (words[0]!.startsWith('-'))
    throw new UsageError(`${words[0]} is not a command.`, 'Put -- between the options and the command.')
  if (health === undefined && [interval, timeout, delay].some((value) => value !== undefined))
    throw new UsageError('There is no health check to time.', 'Add --health /path.')
  return {
    name,
    start: words.length === 1 ? words[0]! : words.map(quote).join(' '),
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
