// The files in which shells look for completions: per user, or for root of the whole machine.
import { homedir } from 'node:os'
import { basename, isAbsolute, join } from 'node:path'
import { UsageError } from '../errors.ts'
import { SCRIPTS, type Shell } from './scripts.ts'

export interface Place {
  path: string
  /** A sentence about anything else that the shell needs. */
  need?: string
}

export function placeOf(shell: Shell): Place {
  return process.geteuid?.() === 0 ? ofTheMachine(shell) : ofTheUser(shell)
}

/** Every file that root can have installed. */
export function placesOfTheMachine(): string[] {
  return (Object.keys(SCRIPTS) as Shell[]).map((shell) => ofTheMachine(shell).path)
}

/** The shell of $SHELL, if there is a script for it. */
export function detectShell(verb: string): Shell {
  const name = basename(process.env.SHELL ?? '')
  const known = Object.keys(SCRIPTS) as Shell[]
  const found = known.find((shell) => shell === name)
  if (found) return found
  const problem =
    name === '' ? 'SHELL is not set.' : `There is no completion for ${name}, the shell of $SHELL.`
  throw new UsageError(problem, `Name one of ${known.join(', ')}: islet completion ${verb} bash`)
}

const BASH_NEED = 'bash needs the package bash-completion for it.'

function ofTheMachine(shell: Shell): Place {
  if (shell === 'bash') return { path: '/usr/local/share/bash-completion/completions/islet', need: BASH_NEED }
  if (shell === 'zsh') return { path: '/usr/local/share/zsh/site-functions/_islet' }
  return { path: '/etc/fish/completions/islet.fish' }
}

function ofTheUser(shell: Shell): Place {
  const data = baseOf('XDG_DATA_HOME', '.local/share')
  if (shell === 'bash') return { path: join(data, 'bash-completion/completions/islet'), need: BASH_NEED }
  if (shell === 'fish')
    return { path: join(baseOf('XDG_CONFIG_HOME', '.config'), 'fish/completions/islet.fish') }
  const directory = join(data, 'zsh/site-functions')
  return {
    path: join(directory, '_islet'),
    need: `Put this into ~/.zshrc, before compinit: fpath=(${directory} $fpath)`,
  }
}

function baseOf(variable: string, otherwise: string): string {
  const given = process.env[variable]
  return given && isAbsolute(given) ? given : join(process.env.HOME || homedir(), otherwise)
}
