import type { Command } from 'commander'
import { addEnvFileOption, type EnvFlags, toEnv, variable } from '../../args/env.ts'
import { findSandbox } from '../../args/sandbox.ts'
import { connect } from '../../connect.ts'
import { UsageError } from '../../errors.ts'
import { print, printJson } from '../../output.ts'
import { type EnvFileFlags, envCommand } from './env-command.ts'

export function set(): Command {
  const set = envCommand(
    'set',
    'Set variables in a .env file and keep the rest of it; makes the file if there is none.',
    'islet env set dev PORT=3000 API_KEY\nislet env set dev --env-file .env.local',
  ).argument('[variables...]', 'NAME=value; NAME alone: as it is here', variable)
  return addEnvFileOption(set).action(
    async (text: string, given: Record<string, string>, flags: EnvFileFlags & EnvFlags) => {
      // Without words it is an empty list, of which nothing is left here.
      const variables = toEnv({ env: { ...given }, envFile: flags.envFile })
      if (!variables) throw new UsageError('There is nothing to set.', 'islet env set --help shows how.')
      const sandbox = await findSandbox(connect(), text)
      const keys = await sandbox.env.update(flags.file, variables)
      if (flags.json) return printJson(keys)
      for (const key of keys) print(key)
    },
  )
}
