import type { Sandbox } from '@islet/sdk'
import type { Command } from 'commander'
import { withSandbox } from '../../args/find.ts'
import { type JsonFlag, sandboxCommand } from '../../command.ts'
import { print, printJson, say } from '../../output.ts'

export function link(): Command {
  return sandboxCommand(
    'link',
    'Print a URL that opens the sandbox in one browser: its terminal, files and ports.',
    'islet link dev\nislet link dev --redirect /play/',
  )
    .option('--redirect <path>', 'the path of the server where the browser ends up; default: /play/')
    .action(
      withSandbox(async ({ magicLinks }: Sandbox, flags: JsonFlag & { redirect?: string }) => {
        const made = await magicLinks.create({ redirectUrl: flags.redirect })
        if (flags.json) return printJson(made)
        print(made.url)
        say(`It works once, until ${made.expiresAt}. Whoever opens it can use the sandbox for 7 days.`)
      }),
    )
}
