import { existsSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { Argument, type Command } from 'commander'
import { command, type JsonFlag } from '../../command.ts'
import { detectShell, placeOf } from '../../completion/place.ts'
import { SCRIPTS, type Shell } from '../../completion/scripts.ts'
import { printJson, say } from '../../output.ts'

export function uninstall(): Command {
  return command(
    'uninstall',
    'Remove the completion that was installed for a shell.',
    'islet completion uninstall zsh',
  )
    .addArgument(
      new Argument('[shell]', 'which one; default: the one of $SHELL').choices(Object.keys(SCRIPTS)),
    )
    .action(async (given: Shell | undefined, flags: JsonFlag) => {
      const shell = given ?? detectShell('uninstall')
      const { path } = placeOf(shell)
      const changed = existsSync(path)
      await rm(path, { force: true })
      if (flags.json) return printJson({ shell, path, changed })
      say(changed ? `Removed ${path}.` : `There is no ${path}.`)
    })
}
