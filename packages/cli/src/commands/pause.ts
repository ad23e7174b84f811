import type { SandboxInfo } from '@islet/sdk'
import type { Command } from 'commander'
import { doToEach } from '../args/sandboxes.ts'
import { command, type JsonFlag } from '../command.ts'
import { formatLeft } from '../format.ts'
import { print, say } from '../output.ts'

export function pause(): Command {
  return command(
    'pause',
    'Let sandboxes stand still, with all that runs in them and its memory; the next use lets one go on.',
    'islet pause dev',
  )
    .argument('<sandbox...>', 'ids, beginnings of ids, or names')
    .action(async (texts: string[], { json }: JsonFlag) => {
      await doToEach(texts, (sandbox) => sandbox.pause(), { json, show })
    })
}

function show(done: SandboxInfo[]): void {
  for (const { id, terminatesAt } of done) {
    print(id)
    if (terminatesAt) say(`${id} is removed in ${formatLeft(terminatesAt)}, unless it goes on before.`)
  }
}
