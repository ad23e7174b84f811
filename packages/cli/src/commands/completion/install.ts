import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { Argument, type Command } from 'commander'
import { command, type JsonFlag } from '../../command.ts'
import { detectShell, placeOf } from '../../completion/place.ts'
import { SCRIPTS, type Shell } from '../../completion/scripts.ts'
import { printJson, say } from '../../output.ts'

export function install(): Command {
  return command(
    'install',
    'Install the completion for a shell: for you, or as root for everybody.',
    'islet completion install zsh',
  )
    .addArgument(
      new Argument('[shell]', 'which one; default: the one of $SHELL').choices(Object.keys(SCRIPTS)),
    )
    .action(async (given: Shell | undefined, flags: JsonFlag) => {
      const shell = given ?? detectShell('install')
      const { path, need } = placeOf(shell)
      const changed = (await readFile(path, 'utf8').catch(() => undefined)) !== SCRIPTS[shell]
      if (changed) {
        await mkdir(dirname(path), { recursive: true })
        await writeFile(path, SCRIPTS[shell])
      }
      if (flags.json) return printJson({ shell, path, changed })
      say(changed ? `Wrote ${path}.` : `${path} is there already.`)
      say(`It works in shells that are started from now on.${need ? ` ${need}` : ''}`)
    })
}
