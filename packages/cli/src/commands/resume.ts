import type { Command } from 'commander'
import { doToEach } from '../args/sandboxes.ts'
import { command, type JsonFlag } from '../command.ts'

export function resume(): Command {
  return command('resume', 'Let paused sandboxes go on where they stood.', 'islet resume dev')
    .argument('<sandbox...>', 'ids, beginnings of ids, or names')
    .action(async (texts: string[], { json }: JsonFlag) => {
      await doToEach(texts, (sandbox) => sandbox.resume(), { json })
    })
}
