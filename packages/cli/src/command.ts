import { Command } from 'commander'

export interface JsonFlag {
  json?: true
}

/** Every command has a sentence, an example and --json. */
export function command(name: string, summary: string, example: string): Command {
  return new Command(name)
    .description(summary)
    .option('--json', 'machine-readable output; errors too, on stderr')
    .addHelpText('after', `\nExample:\n  ${example.replaceAll('\n', '\n  ')}`)
}

export function* walk(command: Command): Generator<Command> {
  yield command
  for (const child of command.commands) yield* walk(child)
}

export function pathOf(command: Command): string {
  return command.parent ? `${pathOf(command.parent)} ${command.name()}` : command.name()
}
