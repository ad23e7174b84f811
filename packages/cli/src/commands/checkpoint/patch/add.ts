import { readFile } from 'node:fs/promises'
import { text } from 'node:stream/consumers'
import type { Command } from 'commander'
import { command, type JsonFlag } from '../../../command.ts'
import { connect } from '../../../connect.ts'
import { print, printJson } from '../../../output.ts'

export function add(): Command {
  return command(
    'add',
    'Add a bash script behind the others of a checkpoint and print its id.',
    'islet checkpoint patch add ckp-… ./update.sh\necho "apt-get install -y jq" | islet checkpoint patch add ckp-… -',
  )
    .argument('<checkpoint>', 'id')
    .argument('<file>', 'the script; - is stdin')
    .option('-d, --description <text>', 'what it is for')
    .action(async (checkpointId: string, file: string, flags: JsonFlag & { description?: string }) => {
      const script = file === '-' ? await text(process.stdin) : await readFile(file, 'utf8')
      const { description } = flags
      const patch = await connect().checkpoints.patches.create(checkpointId, { script, description })
      if (flags.json) printJson(patch)
      else print(patch.id)
    })
}
