import type { Sandbox, SessionTokenInfo } from '@islet/sdk'
import type { Command } from 'commander'
import { findSessionToken, withSandbox } from '../../args/find.ts'
import { duration } from '../../args/parse.ts'
import { addVerbs, type JsonFlag, sandboxCommand } from '../../command.ts'
import { formatAge, formatLeft } from '../../format.ts'
import { print, printJson, printResult, say } from '../../output.ts'
import { type Column, printList } from '../../table.ts'

interface CreateFlags extends JsonFlag {
  description?: string
  expires?: number
}

const columns: Column<SessionTokenInfo>[] = [
  ['ID', ({ id }) => id],
  ['EXPIRES', ({ expiresAt }) => (Date.parse(expiresAt) > Date.now() ? formatLeft(expiresAt) : 'expired')],
  ['LAST USED', ({ lastUsedAt }) => (lastUsedAt === null ? 'never' : `${formatAge(lastUsedAt)} ago`)],
  ['DESCRIPTION', ({ description }) => description ?? '-'],
]

export function token(): Command {
  const printed = sandboxCommand(
    'token',
    'Print a short-lived token for one sandbox; the verbs manage session tokens, which can be revoked.',
    'islet token dev --expires 30m\nislet token create dev --expires 30d\nislet token ls dev\nislet token rm dev tok-4f2k',
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
  return addVerbs(printed, [create(), ls(), rm()])
}

function create(): Command {
  return sandboxCommand(
    'create',
    'Print a new session token, which can be revoked.',
    "islet token create dev --description 'my app' --expires 30d",
  )
    .option('--description <text>', 'what it is for')
    .option('--expires <duration>', 'how long it is valid, 1s to 365d; default: 7d', duration)
    .action(
      withSandbox(async (sandbox: Sandbox, { description, expires, json }: CreateFlags) => {
        const made = await sandbox.sessionTokens.create({ description, expiresIn: expires })
        if (json) return printJson(made)
        print(made.token)
        say(`${made.id} is valid for ${sandbox.id} alone, until ${made.expiresAt}. It is shown only once.`)
      }),
    )
}

function ls(): Command {
  return sandboxCommand('ls', 'List the session tokens of a sandbox.', 'islet token ls dev').action(
    withSandbox(async ({ id, sessionTokens }: Sandbox, flags: JsonFlag) => {
      const none = `${id} has no session tokens. islet token create ${id} creates one.`
      printList(await sessionTokens.list(), flags, { columns, none })
    }),
  )
}

function rm(): Command {
  return sandboxCommand(
    'rm',
    'Revoke a session token at once; its connections end.',
    'islet token rm dev tok-4f2k',
  )
    .argument('<token>', 'id or id prefix of the session token')
    .action(
      withSandbox(async (sandbox: Sandbox, text: string, flags: JsonFlag) => {
        const { id } = await findSessionToken(sandbox, text)
        await sandbox.sessionTokens.revoke(id)
        printResult({ sandboxId: sandbox.id, id }, id, flags)
      }),
    )
}
