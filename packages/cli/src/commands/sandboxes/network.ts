import type { Command } from 'commander'
import { forEachSandbox } from '../../args/each.ts'
import { group, type JsonFlag, sandboxesCommand } from '../../command.ts'

export function network(): Command {
  return group(
    'network',
    'Allow or deny network access of sandboxes.',
    'islet network on dev\nislet network off dev',
    [
      turn('on', 'Let sandboxes reach the network.'),
      turn('off', 'Cut sandboxes off from the network and close their connections.'),
    ],
  )
}

function turn(word: 'on' | 'off', summary: string): Command {
  return sandboxesCommand(word, summary, `islet network ${word} dev`).action(
    async (texts: string[], flags: JsonFlag) => {
      const patch = { network: { enabled: word === 'on' } }
      await forEachSandbox(texts, (sandbox) => sandbox.update(patch), flags)
    },
  )
}
