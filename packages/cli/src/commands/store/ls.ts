import type { Command } from 'commander'
import { integer } from '../../args/parse.ts'
import { findSandbox } from '../../args/sandbox.ts'
import { command, type JsonFlag } from '../../command.ts'
import { connect } from '../../connect.ts'
import { print, printJson, say } from '../../output.ts'

export function ls(): Command {
  return command('ls', 'List the keys, sorted.', 'islet store ls dev run_')
    .alias('list')
    .argument('<sandbox>', 'id, beginning of an id, or name')
    .argument('[prefix]', 'only keys that begin so')
    .option('--limit <count>', 'at most so many, up to 1000', integer, 1000)
    .action(async (text: string, prefix: string | undefined, flags: JsonFlag & { limit: number }) => {
      const { store } = await findSandbox(connect(), text)
      const found = await store.list({ prefix, limit: flags.limit })
      if (flags.json) return printJson(found)
      for (const key of found.keys) print(showKey(key))
      if (found.truncated) say('There are more; a prefix shows others.')
    })
}

/** One line each: a key that holds a line break or another control character is shown as JSON. */
export function showKey(key: string): string {
  return /\p{Cc}/u.test(key) ? JSON.stringify(key) : key
}
