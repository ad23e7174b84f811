import type { Command } from 'commander'
import { findSandbox } from '../../args/sandbox.ts'
import { command, type JsonFlag } from '../../command.ts'
import { connect } from '../../connect.ts'
import { print, printJson } from '../../output.ts'

export function rm(): Command {
  return command('rm', 'Stop services and forget them.', 'islet service rm dev web')
    .argument('<sandbox>', 'id, beginning of an id, or name')
    .argument('<service...>', 'their names')
    .action(async (text: string, names: string[], flags: JsonFlag) => {
      const sandbox = await findSandbox(connect(), text)
      for (const name of names) {
        await sandbox.service.delete(name)
        if (!flags.json) print(name)
      }
      if (flags.json) printJson({ removed: names })
    })
}
