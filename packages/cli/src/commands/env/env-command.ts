import type { Command } from 'commander'
import { command, type JsonFlag } from '../../command.ts'

export interface EnvFileFlags extends JsonFlag {
  file: string
}

/** All of them are about one file of one sandbox. */
export function envCommand(name: string, summary: string, example: string): Command {
  return command(name, summary, example)
    .argument('<sandbox>', 'id, beginning of an id, or name')
    .option('-f, --file <file>', 'in the sandbox, relative to its working directory', '.env')
}
