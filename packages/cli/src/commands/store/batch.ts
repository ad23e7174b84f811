import { readFileSync } from 'node:fs'
import type { StoreOperation } from '@islet/sdk'
import type { Command } from 'commander'
import { findSandbox } from '../../args/sandbox.ts'
import { command, type JsonFlag } from '../../command.ts'
import { connect } from '../../connect.ts'
import { CliError, UsageError } from '../../errors.ts'
import { print, printJson } from '../../output.ts'
import { parseJson, readInput } from './input.ts'

const EXAMPLE =
  'echo \'[{"op": "set", "key": "a", "value": 1}, {"op": "delete", "key": "b"}]\' | islet store batch dev'

export function batch(): Command {
  return command('batch', 'Apply all of a list of operations or none; prints how many.', EXAMPLE)
    .argument('<sandbox>', 'id, beginning of an id, or name')
    .argument('[file]', 'of this machine, with a JSON list of operations; - or nothing reads stdin')
    .action(async (text: string, path: string | undefined, flags: JsonFlag) => {
      const input = path === undefined || path === '-' ? await readInput(path, EXAMPLE) : readFile(path)
      const operations = parseJson(input, EXAMPLE)
      if (!Array.isArray(operations)) throw new UsageError('That is not a list of operations.', EXAMPLE)
      const { store } = await findSandbox(connect(), text)
      const answer = await store.batch(operations as StoreOperation[])
      if (flags.json) printJson(answer)
      else print(String(answer.applied))
    })
}

function readFile(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (cause) {
    const message = `${path} cannot be read: ${(cause as Error).message}.`
    throw new CliError('file_not_readable', message, { hint: `ls -l ${path}`, cause })
  }
}
