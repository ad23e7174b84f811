import type { Command } from 'commander'
import { command, type JsonFlag } from '../../command.ts'
import { connect } from '../../connect.ts'
import { print, printJson } from '../../output.ts'

export function rm(): Command {
  return command(
    'rm',
    'Take a runtime name away, and its image when nothing else names it.',
    'islet image rm python',
  )
    .argument('<runtime...>', 'runtime names or images')
    .action(async (names: string[], flags: JsonFlag) => {
      const { images } = connect()
      for (const name of names) {
        await images.remove(name)
        if (!flags.json) print(name)
      }
      if (flags.json) printJson({ removed: names })
    })
}
