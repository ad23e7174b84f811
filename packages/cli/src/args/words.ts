// What is typed after the name of a sandbox: a command, with whatever options are its own.
import type { Command } from 'commander'
import { pathOf } from '../command.ts'
import { UsageError } from '../errors.ts'

/** One word is shell text; several are a program and its arguments. */
export function toCommand(words: readonly string[], example: string): string | string[] {
  const [first, ...rest] = words
  if (first === undefined) throw new UsageError('There is no command to run.', example)
  return rest.length === 0 ? first : [...words]
}

/** Without the `--` before it. An option of ours in its place is refused: it was meant for us, and would be run as a program. */
export function commandAfter(sandbox: string, words: readonly string[], command: Command): string[] {
  const [ours, theirs] = leadingOptions(words, command)
  const rest = theirs[0] === '--' ? theirs.slice(1) : theirs
  if (ours.length === 0) return rest
  const ending = rest.length > 0 ? ['--', ...rest] : []
  const right = [...ours, sandbox, ...ending].map(quote).join(' ')
  throw new UsageError(`${ours[0]} must stand before the name of the sandbox.`, `${pathOf(command)} ${right}`)
}

/** As one word of a shell. */
export function quote(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`
}

/** Options of `command` that stand first, with their values; and what follows. */
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
