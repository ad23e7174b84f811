import type { Command } from 'commander'
import { duration } from '../args/parse.ts'
import { findSandbox } from '../args/sandbox.ts'
import { command, type JsonFlag } from '../command.ts'
import { connect } from '../connect.ts'
import { print, printJson, say } from '../output.ts'

export function token(): Command {
  return command(
    'token',
    'Print a token that reaches one sandbox and nothing else.',
    'islet token dev --expires 30m',
  )
    .argument('<sandbox>', 'id, beginning of an id, or name')
    .option('--expires <duration>', 'how long it lives, 1s to 24h; default: 1h', duration)
    .action(async (text: string, flags: JsonFlag & { expires?: number }) => {
      const sandbox = await findSandbox(connect(), text)
      const made = await sandbox.getToken({ expiresIn: flags.expires })
      if (flags.json) return printJson(made)
      print(made.token)
      say(`It is for ${sandbox.id} alone, until ${made.expiresAt}.`)
    })
}
