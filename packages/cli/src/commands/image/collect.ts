import type { Command } from 'commander'
import { command, type JsonFlag } from '../../command.ts'
import { connect } from '../../connect.ts'
import { formatBytes } from '../../format.ts'
import { print, printJson, say } from '../../output.ts'

export function collect(): Command {
  return command('collect', 'Remove images that nothing names or uses.', 'islet image collect').action(
    async (flags: JsonFlag) => {
      const result = await connect().images.collect()
      if (flags.json) return printJson(result)
      for (const name of result.removed) print(name)
      say(`${result.removed.length} removed, ${formatBytes(result.freedBytes)} freed.`)
    },
  )
}
