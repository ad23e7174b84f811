// The settings of this server, from the command line, the environment, the config file and the defaults, in this order.
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { nearest } from './config/nearest.ts'
import {
  type Config,
  type Env,
  fileKey,
  type Known,
  OTHER_PREFIXES,
  OTHER_VARIABLES,
  SETTING_NAMES,
  type Setting,
  type SettingName,
  settingOf,
} from './config/settings.ts'

export type { Config } from './config/settings.ts'

export class ConfigError extends Error {
  override name = 'ConfigError'
  readonly problems: readonly string[]

  constructor(problems: readonly string[]) {
    super(
      problems.length === 1
        ? problems[0]
        : `${problems.length} settings are wrong:\n- ${problems.join('\n- ')}`,
    )
    this.problems = problems
  }
}

export interface LoadOptions {
  env: Env
  /** The config file. Default: ISLET_CONFIG, else <data>/config.json if it exists. */
  file?: string | undefined
  /** Options of the command line, as text. */
  overrides?: Partial<Record<SettingName, string | number | undefined>>
  isRoot?: boolean
  /** Whether the log goes to a terminal. */
  isTerminal?: boolean
}

/** Throws a ConfigError that holds every problem at once. */
export function loadConfig({
  env,
  file,
  overrides = {},
  isRoot = process.geteuid?.() === 0,
  isTerminal = false,
}: LoadOptions): Config {
  const problems: string[] = []
  checkVariables(env, problems)

  const config: Record<string, unknown> = {}
  const read = (name: SettingName, fromFile: Record<string, unknown>): void => {
    const spec = settingOf(name)
    const given: [string, unknown][] = [
      [`--${fileKey(name)}`, overrides[name]],
      [spec.env, spec.mayBeEmpty ? env[spec.env] : env[spec.env] || undefined],
      [`"${fileKey(name)}" in the config file`, fromFile[fileKey(name)]],
      [spec.env, defaultOf(spec, { dataDir: config.dataDir as string, env, isRoot, isTerminal })],
    ]
    const [where, value] = given.find(([, value]) => value !== undefined) ?? []
    if (where === undefined) return
    try {
      config[name] = spec.parse(asText(value))
    } catch (error) {
      problems.push(
        `${where} is ${name === 'apiKey' ? 'not usable' : JSON.stringify(value)}: ${(error as Error).message}`,
      )
    }
  }

  read('dataDir', {})
  const path = file ?? (env.ISLET_CONFIG || undefined) ?? defaultFile(config.dataDir)
  const content = path === undefined ? {} : readConfigFile(path, problems)
  for (const name of SETTING_NAMES) if (name !== 'dataDir') read(name, content)
  problems.push(...contradictions(config as Config))
  if (problems.length > 0) throw new ConfigError(problems)
  return config as Config
}

/** Settings that are valid alone but not together. */
function contradictions({ tlsCert, tlsKey, previewDomain }: Config): string[] {
  if ((tlsCert === undefined) !== (tlsKey === undefined))
    return ['ISLET_TLS_CERT and ISLET_TLS_KEY go together: one of them is not set.']
  if (tlsCert !== undefined && previewDomain?.scheme === 'http')
    return ['ISLET_PREVIEW_DOMAIN says http, but with ISLET_TLS_CERT previews are served over https alone.']
  return []
}

function checkVariables(env: Env, problems: string[]): void {
  const known = [...SETTING_NAMES.map((name) => settingOf(name).env), ...Object.keys(OTHER_VARIABLES)]
  for (const name of Object.keys(env)) {
    if (!name.startsWith('ISLET_') || known.includes(name)) continue
    if (OTHER_PREFIXES.some((prefix) => name.startsWith(prefix))) continue
    problems.push(`${name} is not a setting${didYouMean(name, known)}`)
  }
}

function readConfigFile(path: string, problems: string[]): Record<string, unknown> {
  let content: unknown
  try {
    content = JSON.parse(readFileSync(path, 'utf8'))
  } catch (error) {
    problems.push(`The config file ${path} cannot be read: ${(error as Error).message}`)
    return {}
  }
  if (typeof content !== 'object' || content === null || Array.isArray(content)) {
    problems.push(`The config file ${path} does not hold a JSON object.`)
    return {}
  }
  const known = SETTING_NAMES.filter((name) => !settingOf(name).envOnly).map(fileKey)
  for (const key of Object.keys(content)) {
    if (!known.includes(key)) problems.push(`"${key}" in ${path} is not a setting${didYouMean(key, known)}`)
  }
  return content as Record<string, unknown>
}

function didYouMean(name: string, known: string[]): string {
  const near = nearest(name, known)
  return near ? `; did you mean ${near}?` : '.'
}

function defaultFile(dataDir: unknown): string | undefined {
  const path = typeof dataDir === 'string' ? join(dataDir, 'config.json') : undefined
  return path !== undefined && existsSync(path) ? path : undefined
}

function defaultOf(spec: Setting<unknown>, known: Known): string | undefined {
  return typeof spec.default === 'function' ? spec.default(known) : spec.default
}

/** A config file may hold numbers and lists where the environment has text. */
function asText(value: unknown): string {
  if (Array.isArray(value) && value.every((item) => typeof item === 'string')) return value.join(',')
  if (typeof value === 'string' || typeof value === 'number') return String(value)
  throw new Error('it must be text, a number or a list of texts')
}
