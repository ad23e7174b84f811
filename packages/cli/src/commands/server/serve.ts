import { DEFAULT_URL, dataDirectory } from '@islet/sdk'
import type { Server } from '@islet/server'
import type { Command } from 'commander'
import { integer } from '../../args/parse.ts'
import { bannerLines } from '../../banner.ts'
import { command, type JsonFlag } from '../../command.ts'
import { UsageError } from '../../errors.ts'
import { paint, printJson, say } from '../../output.ts'
import { ensureSetup } from '../../setup.ts'

interface ServeFlags extends JsonFlag {
  host?: string
  port?: number
  dataDir?: string
  engine?: string
  storage?: string
  config?: string
  logLevel?: string
  logFormat?: string
  setup?: false
}

export function serve(): Command {
  return command('serve', 'Start the server.', 'sudo islet serve --port 7400')
    .option('--host <address>', 'address to listen on (ISLET_HOST; default 127.0.0.1)')
    .option('-p, --port <port>', 'port to listen on (ISLET_PORT; default 7400, 0 takes a free one)', integer)
    .option('--data-dir <path>', 'directory for all data (ISLET_DATA_DIR)')
    .option('--engine <name>', 'what runs sandboxes (ISLET_ENGINE; default oci)')
    .option('--storage <name>', 'how layers are cloned (ISLET_STORAGE; default auto)')
    .option('--config <path>', 'JSON file with settings (ISLET_CONFIG)')
    .option('--log-level <level>', 'lowest level to log (ISLET_LOG_LEVEL; default info)')
    .option(
      '--log-format <format>',
      'json or text (ISLET_LOG_FORMAT; default: text on a terminal, else json)',
    )
    .option('--no-setup', 'do not install missing system packages first')
    .action(action)
}

async function action(flags: ServeFlags): Promise<void> {
  if (flags.setup !== false) await ensureSetup()
  const { config: file, json, setup, ...overrides } = flags
  const { loadConfig, startServer } = await import('@islet/server')
  let config: Parameters<typeof startServer>[0]
  try {
    config = loadConfig({ env: process.env, file, overrides, isTerminal: process.stdout.isTTY })
  } catch (error) {
    throw new UsageError((error as Error).message, 'islet serve --help lists the options.')
  }
  // Signals are handled from here on, so that one during a slow start also shuts the server down cleanly.
  const stopped = firstSignal()
  const server = await startServer(config)
  if (json)
    printJson({ url: server.url, socketPath: server.socketPath, dataDir: server.dataDir, pid: process.pid })
  else greet(server, config.apiKey !== undefined)
  const failed = await Promise.race([stopped, server.failed])
  if (failed) {
    say(`islet: ${failed}. Sandboxes keep running; start the server again and it takes them over.`)
    process.exit(1)
  }
  say(
    'islet: waiting for running requests to end; sandboxes keep running. Send the signal again to exit at once.',
  )
  await server.close()
}

function greet({ url, socketPath, dataDir }: Server, isKeyGiven: boolean): void {
  // ISLET_DATA_DIR may be set only in this shell, so clients in other shells need to be told.
  const isUsual = !process.env.ISLET_DATA_DIR && dataDir === dataDirectory()
  const isAtDefault = url === DEFAULT_URL && (isUsual || isKeyGiven)
  const isDefault = isAtDefault || (isUsual && socketPath !== undefined)
  for (const [name, text] of bannerLines({ url, socketPath, dataDir, isKeyGiven, isDefault }))
    say(`${paint('dim', name.padEnd(11), process.stderr)} ${text}`)
}

/** Resolves at the first signal; the second exits at once. */
function firstSignal(): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  let count = 0
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.on(signal, () => {
      if (++count > 1) process.exit(signal === 'SIGINT' ? 130 : 143)
      resolve()
    })
  }
  return promise
}
