import type { Sandbox } from '@islet/sdk'
import type { Command } from 'commander'
import { withSandbox } from '../../args/find.ts'
import { duration } from '../../args/parse.ts'
import { type JsonFlag, sandboxCommand } from '../../command.ts'
import { print, printJson, say } from '../../output.ts'

export function token(): Command {
  return sandboxCommand(
    'token',
    'Print a token that gives access to one sandbox only.',
    'islet token dev --expires 30m',
  )
    .option('--expires <duration>', 'how long it is valid, 1s to 24h; default: 1h', duration)
    .action(
      withSandbox(async (sandbox: Sandbox, flags: JsonFlag & { expires?: number }) => {
        const made = await sandbox.getToken({ expiresIn: flags.expires })
        if (flags.json) return printJson(made)
        print(made.token)
        say(`It is valid for ${sandbox.id} alone, until ${made.expiresAt}.`)
      }),
    )
}
