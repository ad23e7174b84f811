// Suggests what can follow the typed words. The scripts of all shells pass their words to this one function.
import type { Command } from 'commander'
import { type ArgumentKind, type CompletionEntry, completionTable, type NamedKind } from './table.ts'

export interface Suggestion {
  text: string
  summary: string
}

/** Asks the server for names; `sandbox` is the first word of the command, if there is one. */
export type Names = Record<NamedKind, (sandbox: string | undefined) => Promise<Suggestion[]>>

/** A shell takes these as one plain word. Names come from other users, and a shell could run one with other characters. */
const SAFE = /^[\w.:@/][\w.:@/-]*$/

/** Undefined means: local files. */
export async function complete(
  program: Command,
  words: readonly string[],
  names: Names,
): Promise<Suggestion[] | undefined> {
  const split = splitValue(words)
  const [before, typed] = [split.words.slice(0, -1), split.words.at(-1) ?? '']
  const found = await candidates(completionTable(program), before, typed, names)
  return found
    ?.filter(({ text }) => text.startsWith(typed))
    .map(({ text, summary }) => ({ text: split.prefix + text, summary }))
}

/** Splits `--option=value` into two words. Most shells pass it as one word; bash passes three and completes the last. */
function splitValue(words: readonly string[]): { words: readonly string[]; prefix: string } {
  const typed = words.at(-1) ?? ''
  const [, prefix, value] = /^(--[\w-]+=)(.*)$/.exec(typed) ?? []
  if (prefix !== undefined) return { words: [...words.slice(0, -1), prefix.slice(0, -1), value!], prefix }
  if (typed === '=') return { words: [...words.slice(0, -1), ''], prefix: '' }
  if (words.at(-2) === '=') return { words: [...words.slice(0, -2), typed], prefix: '' }
  return { words, prefix: '' }
}

async function candidates(
  table: readonly CompletionEntry[],
  before: readonly string[],
  typed: string,
  names: Names,
): Promise<Suggestion[] | undefined> {
  if (before.includes('--')) return undefined
  const { entry, rest } = commandOf(table, before)
  const previous = entry.options.find(({ flags }) => flags.includes(before.at(-1) ?? ''))
  if (previous?.takesValue) return ofKind(previous.value, [], names)
  if (typed.startsWith('-')) {
    return entry.options.flatMap(({ flags, summary }) => flags.slice(-1).map((text) => ({ text, summary })))
  }
  const given = operands(entry, rest)
  const commands = entry.commands.map(({ name, summary }) => ({ text: name, summary }))
  if (commands.length > 0 && entry.arguments.length === 0) return commands
  if (commands.length > 0 && given.length === 0)
    return [...((await ofKind(entry.arguments[0], given, names)) ?? []), ...commands]
  return ofKind(entry.arguments[Math.min(given.length, entry.arguments.length - 1)], given, names)
}

function commandOf(
  table: readonly CompletionEntry[],
  words: readonly string[],
): { entry: CompletionEntry; rest: readonly string[] } {
  for (const depth of [2, 1, 0]) {
    const entry = words.length >= depth && table.find(({ path }) => path === words.slice(0, depth).join(' '))
    if (entry) return { entry, rest: words.slice(depth) }
  }
  return { entry: table[0]!, rest: words }
}

/** The words that are neither options nor values of options. */
function operands({ options }: CompletionEntry, words: readonly string[]): string[] {
  return words.filter((word, at) => {
    const flag = options.find(({ flags }) => flags.includes(words[at - 1] ?? ''))
    return !word.startsWith('-') && !flag?.takesValue
  })
}

async function ofKind(
  kind: ArgumentKind | undefined,
  given: readonly string[],
  names: Names,
): Promise<Suggestion[] | undefined> {
  if (typeof kind === 'object') return kind.choices.map((text) => ({ text, summary: '' }))
  if (kind === 'other' && given.length === 0) return []
  if (kind === undefined || kind === 'other' || kind === 'file') return undefined
  return (await names[kind](given[0])).filter(({ text }) => SAFE.test(text))
}
