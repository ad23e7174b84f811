import type { Command } from 'commander'
import { doToEach } from '../args/sandboxes.ts'
import { command, type JsonFlag } from '../command.ts'

export function hibernate(): Command {
  return command(
    'hibernate',
    'Put sandboxes to sleep: no CPU, memory given back where that can be done; the next use wakes one.',
    'islet hibernate dev sbx-4k2',
  )
    .argument('<sandbox...>', 'ids, beginnings of ids, or names')
    .action(async (texts: string[], { json }: JsonFlag) => {
      await doToEach(texts, (sandbox) => sandbox.hibernate(), { json })
    })
}
