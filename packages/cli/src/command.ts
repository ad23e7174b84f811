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
