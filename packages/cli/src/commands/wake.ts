import type { Command } from 'commander'
import { lasting } from '../args/parse.ts'
import { doToEach } from '../args/sandboxes.ts'
import { command, type JsonFlag } from '../command.ts'

interface WakeFlags extends JsonFlag {
  timeout?: number
}

export function wake(): Command {
  return command('wake', 'Wake hibernated sandboxes.', 'islet wake dev --timeout 30m')
    .argument('<sandbox...>', 'ids, beginnings of ids, or names')
    .option('--timeout <duration>', 'how long it may be idle from now on, like 10m; 0 is never', lasting)
    .action(async (texts: string[], { json, timeout }: WakeFlags) => {
      await doToEach(texts, (sandbox) => sandbox.wake({ timeout }), { json })
    })
}
