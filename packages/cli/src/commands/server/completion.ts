import { existsSync } from 'node:fs'
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { Argument, type Command } from 'commander'
import { addVerbs, command, type JsonFlag } from '../../command.ts'
import { detectShell, placeOf } from '../../completion/place.ts'
import { SCRIPTS, type Shell } from '../../completion/scripts.ts'
import { printJson, say } from '../../output.ts'

const SHELLS = Object.keys(SCRIPTS)

export function completion(): Command {
  const made = command(
    'completion',
    'Print or install the script that completes islet commands in a shell.',
    'islet completion install\nislet completion bash | less',
  )
    .addArgument(new Argument('<shell>', 'name of the shell').choices(SHELLS))
    .action((shell: Shell) => void process.stdout.write(SCRIPTS[shell]))
  return addVerbs(made, [install(), uninstall()])
}

function install(): Command {
  return command(
    'install',
    'Install the completion of a shell, for yourself or, as root, for all users.',
    'islet completion install zsh',
  )
    .addArgument(shellOrDefault())
    .action(async (given: Shell | undefined, flags: JsonFlag) => {
      const shell = given ?? detectShell('install')
      const { path, need } = placeOf(shell)
      const changed = (await readFile(path, 'utf8').catch(() => undefined)) !== SCRIPTS[shell]
      if (changed) {
        await mkdir(dirname(path), { recursive: true })
        await writeFile(path, SCRIPTS[shell])
      }
      if (flags.json) return printJson({ shell, path, changed })
      say(changed ? `Wrote ${path}.` : `${path} is up to date.`)
      say(`It works in shells that are started from now on.${need ? ` ${need}` : ''}`)
    })
}

function uninstall(): Command {
  return command('uninstall', 'Remove the installed completion of a shell.', 'islet completion uninstall zsh')
    .addArgument(shellOrDefault())
    .action(async (given: Shell | undefined, flags: JsonFlag) => {
      const shell = given ?? detectShell('uninstall')
      const { path } = placeOf(shell)
      const changed = existsSync(path)
      await rm(path, { force: true })
      if (flags.json) return printJson({ shell, path, changed })
      say(changed ? `Removed ${path}.` : `There is no ${path}.`)
    })
}

const shellOrDefault = (): Argument =>
  new Argument('[shell]', 'name of the shell; default: the shell of $SHELL').choices(SHELLS)
