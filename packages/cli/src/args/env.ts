import { readFileSync } from 'node:fs'
import { parseEnv } from 'node:util'
import { type Command, InvalidArgumentError } from 'commander'
import { CliError } from '../errors.ts'

export interface EnvFlags {
  env?: Record<string, string>
  envFile?: string[]
}

export function addEnvOptions(command: Command): Command {
  command.option(
    '-e, --env <name[=value]>',
    'set a variable; without a value: as it is here (repeat)',
    variable,
  )
  return addEnvFileOption(command)
}

export function addEnvFileOption(command: Command): Command {
  const summary = 'set the variables of a file of NAME=value lines (repeat)'
  return command.option('--env-file <path>', summary, addFile)
}

/** Files first, so that --env can override them. */
export function toEnv({ env, envFile = [] }: EnvFlags): Record<string, string> | undefined {
  const all: Record<string, string> = {}
  for (const path of envFile) Object.assign(all, readEnvFile(path))
  Object.assign(all, env)
  return Object.keys(all).length > 0 ? all : undefined
}

/** NAME=value, or NAME of a variable that is set here. */
export function variable(text: string, previous: Record<string, string> = {}): Record<string, string> {
  const at = text.indexOf('=')
  const name = at < 0 ? text : text.slice(0, at)
  if (name === '')
    throw new InvalidArgumentError('It must be NAME=value, or NAME of a variable that is set here.')
  const value = at < 0 ? process.env[name] : text.slice(at + 1)
  if (value === undefined)
    throw new InvalidArgumentError(`${name} is not set here; give it as ${name}=value.`)
  return { ...previous, [name]: value }
}

function addFile(path: string, previous: string[] = []): string[] {
  return [...previous, path]
}

function readEnvFile(path: string): Record<string, string> {
  try {
    return parseEnv(readFileSync(path, 'utf8')) as Record<string, string>
  } catch (cause) {
    const reason = (cause as Error).message
    throw new CliError('file_not_readable', `${path} cannot be read: ${reason}.`, {
      hint: `ls -l ${path}`,
      cause,
    })
  }
}
