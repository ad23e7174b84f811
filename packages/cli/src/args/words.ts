// The command after the name of a sandbox, with its own options.
import type { Command } from 'commander'
import { pathOf } from '../command.ts'
import { UsageError } from '../errors.ts'
import { formatCommand } from '../format.ts'

export const COMMAND = 'one word is shell text; several words are a program and its arguments'

/** One word is shell text; several words are a program and its arguments. */
export function toCommand(words: readonly string[], example: string): string | string[] {
  const [first, ...rest] = words
  if (first === undefined) throw new UsageError('There is no command to run.', example)
  return rest.length === 0 ? first : [...words]
}

/** Drops the `--` before the command. Refuses our own options in its place: they would be run as a program. */
export function commandAfter(sandbox: string, words: readonly string[], command: Command): string[] {
  const [ours, theirs] = leadingOptions(words, command)
  const rest = theirs[0] === '--' ? theirs.slice(1) : theirs
  if (ours.length === 0) return rest
  const ending = rest.length > 0 ? ['--', ...rest] : []
  throw new UsageError(
    `${ours[0]} must come before the name of the sandbox.`,
    `${pathOf(command)} ${formatCommand([...ours, sandbox, ...ending])}`,
  )
}

/** Splits off the options of `command`, with their values, at the beginning of `words`. */
function leadingOptions(words: readonly string[], command: Command): [ours: string[], theirs: string[]] {
  const options = command.createHelp().visibleOptions(command)
  let at = 0
  while (at < words.length) {
    const word = words[at]!
    const isLong = word.startsWith('--')
    const option = options.find(({ short, long }) =>
      isLong ? long === word.split('=')[0] : short !== undefined && word.slice(0, 2) === short,
    )
    if (!option) break
    const isWhole = word === option.short || word === option.long
    at += option.required && isWhole ? 2 : 1
  }
  return [words.slice(0, at), words.slice(at)]
}
