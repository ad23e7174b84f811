import type { Command } from 'commander'
import { pair } from '../../args/parse.ts'
import { findSandbox } from '../../args/sandbox.ts'
import { connect } from '../../connect.ts'
import { print, printJson } from '../../output.ts'
import { type EnvFileFlags, envCommand } from './env-command.ts'

export function set(): Command {
  return envCommand(
    'set',
    'Set variables in a .env file and keep the rest of it; makes the file if there is none.',
    'islet env set dev PORT=3000 DEBUG=true',
  )
    .argument('<variables...>', 'KEY=VALUE', pair)
    .action(async (text: string, variables: Record<string, string>, flags: EnvFileFlags) => {
      const sandbox = await findSandbox(connect(), text)
      const keys = await sandbox.env.update(flags.file, variables)
      if (flags.json) return printJson(keys)
      for (const key of keys) print(key)
    })
}
