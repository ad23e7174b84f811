import type { Command } from 'commander'
import { findSandbox } from '../args/sandbox.ts'
import { commandAfter, toCommand } from '../args/words.ts'
import { command } from '../command.ts'
import { connect } from '../connect.ts'
import { Signals } from '../stdio/signals.ts'
import { followTerminal, requireTerminal, terminalEnv } from '../stdio/terminal.ts'

interface ShFlags {
  cwd?: string
  user?: string
}

export function sh(): Command {
  return command('sh', 'Open a shell (or another command) of a sandbox in this terminal.', 'islet sh dev')
    .argument('<sandbox>', 'id, beginning of an id, or name')
    .argument('[command...]', 'instead of a login shell')
    .option('-w, --cwd <path>', 'where it starts')
    .option('-u, --user <name>', 'who it runs as')
    .action(async (text: string, typed: string[], { cwd, user }: ShFlags, made: Command) => {
      const words = commandAfter(text, typed, made)
      requireTerminal(`islet exec ${text} -- COMMAND`)
      const sandbox = await findSandbox(connect(), text)
      const chosen = words.length > 0 ? { command: toCommand(words, '') } : {}
      using signals = new Signals()
      process.exitCode = await followTerminal(
        (options) => sandbox.pty.create({ ...options, ...chosen, cwd, user, env: terminalEnv() }),
        signals,
      )
    })
}
