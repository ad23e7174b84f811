import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import type { Command } from 'commander'
import { command, type JsonFlag } from '../../command.ts'
import { connect } from '../../connect.ts'
import { Progress } from '../../copy/progress.ts'
import { CliError } from '../../errors.ts'
import { print, printJson } from '../../output.ts'

interface ImportFlags extends JsonFlag {
  name?: string
  tag?: string
  otherHost?: true
}

export function importSnapshot(): Command {
  return command(
    'import',
    'Make a snapshot of an exported file and print its id.',
    'islet snapshot import with-deps.tar.zst --tag with-deps',
  )
    .argument('<path>', 'the file, or - for stdin')
    .option('--name <name>', 'another name than the one in the file')
    .option('--tag <tag>', 'to find it by; if another snapshot has it, it moves here')
    .option('--other-host', 'also a snapshot of the runtime host of a machine with another system')
    .action(async (path: string, { json, ...options }: ImportFlags) => {
      const sizeBytes = path === '-' ? undefined : await sizeOf(path)
      using progress = new Progress(path, sizeBytes)
      const source = path === '-' ? process.stdin : createReadStream(path)
      const made = await connect().snapshots.import(progress.count(source), options)
      if (json) printJson(made)
      else print(made.id)
    })
}

async function sizeOf(path: string): Promise<number> {
  const found = await stat(path).catch(() => undefined)
  if (found && !found.isDirectory()) return found.size
  throw new CliError('file_not_found', `There is no file ${path}.`, { hint: 'ls -la shows what is there.' })
}
