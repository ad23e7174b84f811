import type { Command } from 'commander'
import { integer } from '../../args/parse.ts'
import { findSandbox } from '../../args/sandbox.ts'
import { command, type JsonFlag } from '../../command.ts'
import { connect } from '../../connect.ts'
import { print, printJson } from '../../output.ts'

export function rm(): Command {
  return command('rm', 'Take the URL of a port away.', 'islet preview rm dev 3000')
    .argument('<sandbox>', 'id, beginning of an id, or name')
    .argument('<port>', 'the port inside', integer)
    .action(async (text: string, port: number, flags: JsonFlag) => {
      const sandbox = await findSandbox(connect(), text)
      await sandbox.deletePreviewURL(port)
      if (flags.json) printJson({ sandboxId: sandbox.id, port })
      else print(String(port))
    })
}
