import { Command } from 'commander'
import { doToEach } from '../args/sandboxes.ts'
import { command, type JsonFlag } from '../command.ts'

export function network(): Command {
  const group = new Command('network').description('Whether a sandbox reaches the network.')
  group.addHelpText('after', '\nExample:\n  islet network on dev\n  islet network off dev')
  group.addCommand(turn('on', 'Let sandboxes reach the network.'))
  group.addCommand(turn('off', 'Take the network and all connections away.'))
  return group
}

function turn(word: 'on' | 'off', description: string): Command {
  return command(word, description, `islet network ${word} dev`)
    .argument('<sandbox...>', 'ids, beginnings of ids, or names')
    .action(async (texts: string[], { json }: JsonFlag) => {
      const patch = { network: { enabled: word === 'on' } }
      await doToEach(texts, (sandbox) => sandbox.update(patch), { json })
    })
}
