import type { Sandbox } from '@islet/sdk'
import type { Command } from 'commander'
import { addEnvFileOption, type EnvFlags, toEnv, variable } from '../../args/env.ts'
import { findSandbox, withSandbox } from '../../args/find.ts'
import { group, type JsonFlag, sandboxCommand } from '../../command.ts'
import { connect } from '../../connect.ts'
import { UsageError } from '../../errors.ts'
import { printResult, say } from '../../output.ts'

interface FileFlags extends JsonFlag {
  file: string
}

export function env(): Command {
  return group(
    'env',
    'Edit the .env files of a sandbox.',
    'islet env set dev API_URL=http://localhost:3000',
    [ls(), set(), rm()],
  )
}

function ls(): Command {
  return envCommand('ls', 'Print the variables of a .env file.', 'islet env ls dev -f .env.production')
    .alias('list')
    .action(
      withSandbox(async (sandbox: Sandbox, flags: FileFlags) => {
        const variables = await sandbox.env.retrieve(flags.file)
        const lines = Object.entries(variables).map(([key, value]) => `${key}=${value}`)
        printResult(variables, lines, flags)
      }),
    )
}

function set(): Command {
  const made = envCommand(
    'set',
    'Set variables in a .env file and keep the rest of it; create the file if it is missing.',
    'islet env set dev PORT=3000 API_KEY\nislet env set dev --env-file .env.local',
  ).argument('[variables...]', 'NAME=value; NAME alone copies it from this environment', variable)
  return addEnvFileOption(made).action(
    async (text: string, given: Record<string, string>, flags: FileFlags & EnvFlags) => {
      // Without words, `given` is an empty array; the spread makes it an empty object.
      const variables = toEnv({ env: { ...given }, envFile: flags.envFile })
      if (!variables) throw new UsageError('There is nothing to set.', 'islet env set --help shows how.')
      const keys = await (await findSandbox(connect(), text)).env.update(flags.file, variables)
      printResult(keys, keys, flags)
    },
  )
}

function rm(): Command {
  return envCommand(
    'rm',
    'Remove variables from a .env file and print the ones that existed.',
    'islet env rm dev DEBUG',
  )
    .argument('<keys...>', 'names of variables')
    .action(
      withSandbox(async (sandbox: Sandbox, keys: string[], flags: FileFlags) => {
        const removed = await sandbox.env.remove(flags.file, keys)
        printResult(removed, removed, flags)
        if (removed.length === 0 && !flags.json) say(`None of these variables is in ${flags.file}.`)
      }),
    )
}

function envCommand(name: string, summary: string, example: string): Command {
  const file = 'path in the sandbox, relative to its working directory'
  return sandboxCommand(name, summary, example).option('-f, --file <file>', file, '.env')
}
