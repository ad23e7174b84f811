import type { Command } from 'commander'
import { findSandbox } from '../../args/sandbox.ts'
import { connect } from '../../connect.ts'
import { print, printJson, say } from '../../output.ts'
import { type EnvFileFlags, envCommand } from './env-command.ts'

export function rm(): Command {
  return envCommand(
    'rm',
    'Take variables out of a .env file; prints those that were there.',
    'islet env rm dev DEBUG',
  )
    .argument('<keys...>', 'names of variables')
    .action(async (text: string, keys: string[], flags: EnvFileFlags) => {
      const sandbox = await findSandbox(connect(), text)
      const removed = await sandbox.env.remove(flags.file, keys)
      if (flags.json) return printJson(removed)
      for (const key of removed) print(key)
      if (removed.length === 0) say(`None of them is in ${flags.file}.`)
    })
}
