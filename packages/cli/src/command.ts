import { Command } from 'commander'

export interface JsonFlag {
  json?: true
}

export const SANDBOX = 'id, id prefix, or name'
const SANDBOXES = 'ids, id prefixes, or names'

/** Every command has a summary, an example and --json. */
export function command(name: string, summary: string, example: string): Command {
  return withExample(new Command(name).description(summary), example).option(
    '--json',
    'print JSON; errors too, on stderr',
  )
}

/** A command about one sandbox, which is its first argument. */
export function sandboxCommand(name: string, summary: string, example: string): Command {
  return command(name, summary, example).argument('<sandbox>', SANDBOX)
}

/** A command about one or more sandboxes. */
export function sandboxesCommand(name: string, summary: string, example: string): Command {
  return command(name, summary, example).argument('<sandbox...>', SANDBOXES)
}

/** A noun and its verbs. */
export function group(name: string, summary: string, example: string, verbs: readonly Command[]): Command {
  return addVerbs(withExample(new Command(name).description(summary), example), verbs)
}

/** Options after a verb belong to the verb. */
export function addVerbs(noun: Command, verbs: readonly Command[]): Command {
  noun.enablePositionalOptions()
  for (const verb of verbs) noun.addCommand(verb)
  return noun
}

export function* walk(command: Command): Generator<Command> {
  yield command
  for (const child of command.commands) yield* walk(child)
}

export function pathOf(command: Command): string {
  return command.parent ? `${pathOf(command.parent)} ${command.name()}` : command.name()
}

function withExample(command: Command, example: string): Command {
  return command.addHelpText('after', `\nExample:\n  ${example.replaceAll('\n', '\n  ')}`)
}
