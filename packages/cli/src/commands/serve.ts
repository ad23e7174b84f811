import { DEFAULT_URL, dataDirectory } from '@islet/sdk'
import type { Server } from '@islet/server'
import type { Command } from 'commander'
import { integer } from '../args/parse.ts'
import { bannerLines } from '../banner.ts'
import { command, type JsonFlag } from '../command.ts'
import { UsageError } from '../errors.ts'
import { paint, printJson, say } from '../output.ts'
import { ensureSetup } from '../setup.ts'

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
    .option('--host <address>', 'where to listen (ISLET_HOST; default 127.0.0.1)')
    .option('-p, --port <port>', 'where to listen (ISLET_PORT; default 7400, 0 takes a free one)', integer)
    .option('--data-dir <path>', 'where everything is kept (ISLET_DATA_DIR)')
    .option('--engine <name>', 'what runs sandboxes (ISLET_ENGINE; default oci)')
    .option('--storage <name>', 'how layers are cloned (ISLET_STORAGE; default auto)')
    .option('--config <path>', 'a JSON file of settings (ISLET_CONFIG)')
    .option('--log-level <level>', 'the least important lines (ISLET_LOG_LEVEL; default info)')
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
  // Listened for before the server is up: a signal during a slow start also ends it well.
  const stopped = firstSignal()
  const server = await startServer(config)
  if (json)
    printJson({ url: server.url, socketPath: server.socketPath, dataDir: server.dataDir, pid: process.pid })
  else greet(server, config.apiKey !== undefined)
  const failed = await Promise.race([stopped, server.failed])
  if (failed) {
    say(`islet: ${failed}. Sandboxes go on; start the server again and it takes them over.`)
    process.exit(1)
  }
  say('islet: letting running requests end; sandboxes go on. Once more leaves at once.')
  await server.close()
}

function greet({ url, socketPath, dataDir }: Server, isKeyGiven: boolean): void {
  // Elsewhere nobody may have set what is set here.
  const isUsual = !process.env.ISLET_DATA_DIR && dataDir === dataDirectory()
  const isAtDefault = url === DEFAULT_URL && (isUsual || isKeyGiven)
  const isDefault = isAtDefault || (isUsual && socketPath !== undefined)
  for (const [name, text] of bannerLines({ url, socketPath, dataDir, isKeyGiven, isDefault }))
    say(`${paint('dim', name.padEnd(11), process.stderr)} ${text}`)
}

/** Resolves at the first signal; the second leaves at once. */
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
