import type { Command } from 'commander'
import { findSandbox } from '../../args/find.ts'
import { addUserOptions } from '../../args/stdio.ts'
import { commandAfter, toCommand } from '../../args/words.ts'
import { sandboxCommand } from '../../command.ts'
import { connect } from '../../connect.ts'
import { runInTerminal } from '../../stdio/foreground.ts'
import { Signals } from '../../stdio/signals.ts'
import { requireTerminal } from '../../stdio/terminal.ts'

interface ShFlags {
  cwd?: string
  user?: string
}

export function sh(): Command {
  const made = sandboxCommand('sh', 'Open a shell in a sandbox, in this terminal.', 'islet sh dev').argument(
    '[command...]',
    'run this in place of a login shell',
  )
  return addUserOptions(made).action(action)
}

async function action(text: string, typed: string[], { cwd, user }: ShFlags, made: Command): Promise<void> {
  const words = commandAfter(text, typed, made)
  requireTerminal(`islet exec ${text} -- COMMAND`)
  const sandbox = await findSandbox(connect(), text)
  const chosen = words.length > 0 ? toCommand(words, '') : undefined
  using signals = new Signals()
  process.exitCode = await runInTerminal(sandbox, chosen, { cwd, user }, signals)
}
