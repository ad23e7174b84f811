import type { Command } from 'commander'
import { findSandbox } from '../../args/sandbox.ts'
import { command, type JsonFlag } from '../../command.ts'
import { connect } from '../../connect.ts'
import { print, printJson, say } from '../../output.ts'
import { showKey } from './ls.ts'

export function rm(): Command {
  return command('rm', 'Delete keys; prints those that were there.', 'islet store rm dev progress status')
    .argument('<sandbox>', 'id, beginning of an id, or name')
    .argument('<key...>')
    .action(async (text: string, keys: string[], flags: JsonFlag) => {
      const { store } = await findSandbox(connect(), text)
      const removed: string[] = []
      for (const key of keys) if ((await store.delete(key)).deleted) removed.push(key)
      if (flags.json) return printJson(removed)
      for (const key of removed) print(showKey(key))
      if (removed.length === 0) say('None of them is there.')
    })
}
