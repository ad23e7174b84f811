import type { Command } from 'commander'
import { findSandbox } from '../../args/sandbox.ts'
import { command, type JsonFlag } from '../../command.ts'
import { connect } from '../../connect.ts'
import { print, printJson } from '../../output.ts'

export function rm(): Command {
  return command(
    'rm',
    'Stop overlays and remove what they copied.',
    'islet overlay rm dev ovl-0123456789abcdefghij',
  )
    .argument('<sandbox>', 'id, beginning of an id, or name')
    .argument('<overlays...>', 'ids')
    .action(async (text: string, ids: string[], flags: JsonFlag) => {
      const sandbox = await findSandbox(connect(), text)
      for (const id of ids) {
        await sandbox.files.overlay.destroy(id)
        if (!flags.json) print(id)
      }
      if (flags.json) printJson(ids)
    })
}
