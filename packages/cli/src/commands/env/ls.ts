import type { Command } from 'commander'
import { findSandbox } from '../../args/sandbox.ts'
import { connect } from '../../connect.ts'
import { print, printJson } from '../../output.ts'
import { type EnvFileFlags, envCommand } from './env-command.ts'

export function ls(): Command {
  return envCommand('ls', 'Print the variables of a .env file.', 'islet env ls dev -f .env.production')
    .alias('list')
    .action(async (text: string, flags: EnvFileFlags) => {
      const sandbox = await findSandbox(connect(), text)
      const variables = await sandbox.env.retrieve(flags.file)
      if (flags.json) return printJson(variables)
      for (const [key, value] of Object.entries(variables)) print(`${key}=${value}`)
    })
}
