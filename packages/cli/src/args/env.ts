import { parseEnv } from 'node:util'
import type { Command } from 'commander'
import { readTextFile } from '../stdio/input.ts'
import { invalid, many } from './parse.ts'

export interface EnvFlags {
  env?: Record<string, string>
  envFile?: string[]
}

export function addEnvOptions(command: Command): Command {
  return addEnvFileOption(addEnvOption(command))
}

export function addEnvOption(command: Command): Command {
  const summary = 'set a variable; without a value: copy it from this environment (repeat)'
  return command.option('-e, --env <name[=value]>', summary, variable)
}

export function addEnvFileOption(command: Command): Command {
  return command.option(
    '--env-file <path>',
    'set variables from a local file of NAME=value lines (repeat)',
    many,
  )
}

/** --env overrides --env-file. */
export function toEnv({ env, envFile = [] }: EnvFlags): Record<string, string> | undefined {
  const all: Record<string, string> = {}
  for (const path of envFile) Object.assign(all, parseEnv(readTextFile(path)))
  Object.assign(all, env)
  return Object.keys(all).length > 0 ? all : undefined
}

/** NAME=value, or the NAME of a variable of this environment. */
export function variable(text: string, previous: Record<string, string> = {}): Record<string, string> {
  const at = text.indexOf('=')
  const name = at < 0 ? text : text.slice(0, at)
  if (name === '') invalid('It must be NAME=value, or NAME of a variable that is set here.')
  const value = at < 0 ? process.env[name] : text.slice(at + 1)
  if (value === undefined) invalid(`${name} is not set here; give it as ${name}=value.`)
  return { ...previous, [name]: value }
}
