import type { Command } from 'commander'
import { integer } from '../args/parse.ts'
import { findSandbox } from '../args/sandbox.ts'
import { command, type JsonFlag } from '../command.ts'
import { connect } from '../connect.ts'
import { print, printJson, say } from '../output.ts'
import { ls } from './preview/ls.ts'
import { rm } from './preview/rm.ts'

interface PreviewFlags extends JsonFlag {
  token?: true
  domain?: string
}

export function preview(): Command {
  const made = command(
    'preview',
    'Print the URL by which a port of a sandbox is reached, made if there is none.',
    'islet preview dev 3000\nislet preview dev 3000 --token\nislet preview ls dev\nislet preview rm dev 3000',
  )
    // Options behind ls and rm are theirs.
    .enablePositionalOptions()
    .argument('<sandbox>', 'id, beginning of an id, or name')
    .argument('<port>', 'what the program inside listens on', integer)
    .option('--token', 'ask visitors for a token; prints a new one below the URL')
    .option('--domain <name>', 'a name of its own that points at the server')
    .action(async (text: string, port: number, flags: PreviewFlags) => {
      const sandbox = await findSandbox(connect(), text)
      const { token, domain } = flags
      const found = await sandbox.createPreviewURL({
        port,
        ...(domain !== undefined && { domain }),
        ...(token && { authConfig: { type: 'token' } }),
        // Asking for the URL does not change who may see it.
        ...(!token && domain === undefined && { keep: true }),
      })
      if (flags.json) return printJson(found)
      print(found.url)
      if (found.token === undefined) return
      print(found.token)
      say('It is told only now. Send it as a bearer token, or open the URL with ?islet_token=TOKEN.')
    })
  made.addCommand(ls())
  made.addCommand(rm())
  return made
}
