import type { Preview, Sandbox } from '@islet/sdk'
import type { Command } from 'commander'
import { withSandbox } from '../../args/find.ts'
import { integer } from '../../args/parse.ts'
import { addVerbs, type JsonFlag, sandboxCommand } from '../../command.ts'
import { formatAge } from '../../format.ts'
import { print, printJson, printResult, say } from '../../output.ts'
import { type Column, printList } from '../../table.ts'

interface PreviewFlags extends JsonFlag {
  token?: true
  domain?: string
}

const columns: Column<Preview>[] = [
  ['PORT', ({ port }) => String(port)],
  ['URL', ({ url }) => url],
  ['ASKS FOR', ({ authConfig }) => authConfig?.type ?? '-'],
  ['AGE', ({ createdAt }) => formatAge(createdAt)],
]

export function preview(): Command {
  const made = sandboxCommand(
    'preview',
    'Print the preview URL of a port of a sandbox; create it if there is none.',
    'islet preview dev 3000\nislet preview dev 3000 --token\nislet preview ls dev\nislet preview rm dev 3000',
  )
    .argument('<port>', 'the port that a program in the sandbox listens on', integer)
    .option('--token', 'require a token; print a new one after the URL')
    .option('--domain <name>', 'use this domain, which must point at the server')
    .action(withSandbox(action))
  return addVerbs(made, [ls(), rm()])
}

async function action(sandbox: Sandbox, port: number, flags: PreviewFlags): Promise<void> {
  const { token, domain } = flags
  const found = await sandbox.createPreviewURL({
    port,
    ...(domain !== undefined && { domain }),
    ...(token && { authConfig: { type: 'token' } }),
    // Without options an existing preview keeps its settings.
    ...(!token && domain === undefined && { keep: true }),
  })
  if (flags.json) return printJson(found)
  print(found.url)
  if (found.token === undefined) return
  print(found.token)
  say('The token is shown only once. Send it as a bearer token, or open the URL with ?islet_token=TOKEN.')
}

function ls(): Command {
  return sandboxCommand('ls', 'List the previews of a sandbox.', 'islet preview ls dev').action(
    withSandbox(async (sandbox: Sandbox, flags: JsonFlag) => {
      const none = `${sandbox.id} has no previews. islet preview ${sandbox.id} PORT creates one.`
      printList(await sandbox.listPreviewURLs(), flags, { columns, none })
    }),
  )
}

function rm(): Command {
  return sandboxCommand('rm', 'Remove the URL of a port.', 'islet preview rm dev 3000')
    .argument('<port>', 'the port in the sandbox', integer)
    .action(
      withSandbox(async (sandbox: Sandbox, port: number, flags: JsonFlag) => {
        await sandbox.deletePreviewURL(port)
        printResult({ sandboxId: sandbox.id, port }, String(port), flags)
      }),
    )
}
