// The command table for completion: words, options, and the kind of each argument.
import type { Command } from 'commander'
import { pathOf, walk } from '../command.ts'

export interface CompletionEntry {
  /** Without the name of the program, like '', 'ls' or 'image pull'. */
  path: string
  summary: string
  commands: { name: string; summary: string }[]
  options: { flags: string[]; summary: string; takesValue: boolean; value: ArgumentKind }[]
  /** In order; the last one repeats if it is variadic. */
  arguments: ArgumentKind[]
}

/** Kinds of names that the server knows. */
export type NamedKind = (typeof NAMED)[number] | 'project'
export type ArgumentKind = NamedKind | 'file' | 'other' | { choices: string[] }

export function completionTable(program: Command): CompletionEntry[] {
  return [...walk(program)].filter((command) => !command.name().startsWith('__')).map(entryOf)
}

function entryOf(command: Command): CompletionEntry {
  const help = command.createHelp()
  return {
    path: pathOf(command).split(' ').slice(1).join(' '),
    summary: command.description(),
    commands: command.commands
      .filter((child) => !child.name().startsWith('__'))
      .map((child) => ({ name: child.name(), summary: child.description() })),
    options: help.visibleOptions(command).map((option) => ({
      flags: [option.short, option.long].filter((flag): flag is string => flag !== undefined),
      summary: option.description,
      takesValue: option.required || option.optional,
      value: option.argChoices ? { choices: option.argChoices } : valueKindOf(option.name()),
    })),
    arguments: command.registeredArguments.map((argument) =>
      argument.argChoices ? { choices: argument.argChoices } : kindOf(argument.name()),
    ),
  }
}

const NAMED = ['sandbox', 'process', 'service', 'checkpoint', 'snapshot', 'runtime'] as const
/** The server knows the values of these options. For others the shell offers files. */
const VALUED = ['runtime', 'snapshot', 'checkpoint', 'project'] as const

function kindOf(name: string): ArgumentKind {
  const named = NAMED.find((kind) => kind === name)
  if (named) return named
  return ['source', 'target', 'path'].includes(name) ? 'file' : 'other'
}

function valueKindOf(name: string): ArgumentKind {
  return VALUED.find((kind) => kind === name) ?? 'file'
}
