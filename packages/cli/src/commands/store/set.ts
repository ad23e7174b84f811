import type { Command } from 'commander'
import { duration } from '../../args/parse.ts'
import { findSandbox } from '../../args/sandbox.ts'
import { command, type JsonFlag } from '../../command.ts'
import { connect } from '../../connect.ts'
import { printJson } from '../../output.ts'
import { parseJson, readInput } from './input.ts'

interface SetFlags extends JsonFlag {
  string?: true
  ttl?: number
}

const EXAMPLE =
  'islet store set dev progress \'{"step": 3}\' --ttl 1h\nislet store set dev status --string busy'

export function set(): Command {
  return command('set', 'Set a value, over what is there.', EXAMPLE)
    .argument('<sandbox>', 'id, beginning of an id, or name')
    .argument('<key>')
    .argument('[value]', 'JSON; - or nothing reads it from stdin')
    .option('--string', 'the value is text, not JSON')
    .option('--ttl <duration>', 'forget it after this long, like 30s; default: never', duration)
    .action(async (text: string, key: string, typed: string | undefined, flags: SetFlags) => {
      const input = await readInput(typed, EXAMPLE.split('\n')[0]!)
      const value = flags.string
        ? input
        : parseJson(input, 'Quote it for the shell, or take --string for text.')
      const ttl_seconds = flags.ttl === undefined ? undefined : flags.ttl / 1000
      const answer = await (await findSandbox(connect(), text)).store.set(key, { value, ttl_seconds })
      if (flags.json) printJson(answer)
    })
}
