import type { Command } from 'commander'
import { findSandbox } from '../../args/sandbox.ts'
import { command, type JsonFlag } from '../../command.ts'
import { connect } from '../../connect.ts'
import { print, printJson } from '../../output.ts'

export function get(): Command {
  return command(
    'get',
    'Print a value as JSON; with --json also when it expires.',
    'islet store get dev progress\nislet store get dev status --string',
  )
    .argument('<sandbox>', 'id, beginning of an id, or name')
    .argument('<key>')
    .option('--string', 'a text without quotes')
    .action(async (text: string, key: string, flags: JsonFlag & { string?: true }) => {
      const entry = await (await findSandbox(connect(), text)).store.get(key)
      if (flags.json) return printJson(entry)
      if (flags.string && typeof entry.value === 'string') print(entry.value)
      else printJson(entry.value)
    })
}
