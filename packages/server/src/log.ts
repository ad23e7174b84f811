// Structured log lines. Secrets are removed: fields with the names below are hidden in the first two levels, and text that looks like
// a key is cut from the printed line.
import { type DestinationStream, type Logger, pino, stdSerializers } from 'pino'

export type Log = Logger

export const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'silent'] as const
export const LOG_FORMATS = ['json', 'text'] as const

export interface LogOptions {
  level?: (typeof LOG_LEVELS)[number]
  format?: (typeof LOG_FORMATS)[number]
  /** Default: stdout. */
  destination?: DestinationStream
}

const HIDDEN = '[hidden]'
const HIDDEN_FIELDS = new Set([
  'authorization',
  'headers',
  'cookie',
  'key',
  'apiKey',
  'token',
  'secret',
  'password',
  'env',
  'stdin',
  'stdout',
  'stderr',
  'data',
  'content',
  'body',
  'query',
  'command',
  'argv',
])
const SECRET_TEXT = /\bislet_[A-Za-z0-9_-]{20,}|\b(?:Bearer|islet\.bearer\.)\s*[^\s"\\,]{8,}/g

export function createLog({ level = 'info', format = 'json', destination }: LogOptions = {}): Log {
  // Asynchronous: lines are written in batches; pino writes the rest at exit.
  const target = destination ?? pino.destination({ dest: 1, sync: false })
  return pino(
    {
      level,
      base: undefined,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }), log: hideFields },
      serializers: { err: describeError, error: describeError },
      hooks: { streamWrite: (line) => (format === 'text' ? asText(cutSecrets(line)) : cutSecrets(line)) },
    },
    target,
  )
}

function hideFields(fields: Record<string, unknown>, depth = 0): Record<string, unknown> {
  let shown = fields
  for (const name in fields) {
    const value = fields[name]
    let replaced = value
    if (HIDDEN_FIELDS.has(name) && value !== undefined) replaced = HIDDEN
    else if (depth === 0 && isPlainObject(value)) replaced = hideFields(value, 1)
    if (replaced === value) continue
    if (shown === fields) shown = { ...fields }
    shown[name] = replaced
  }
  return shown
}

function isPlainObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype
}

function describeError(value: unknown): unknown {
  if (!(value instanceof Error)) return value
  const described: Record<string, unknown> = { ...stdSerializers.err(value) }
  for (const name of Object.keys(described)) {
    if (HIDDEN_FIELDS.has(name)) described[name] = HIDDEN
  }
  // Details of a validation error may quote the request.
  delete described.details
  return described
}

function cutSecrets(line: string): string {
  return line.includes('islet') || line.includes('Bearer') ? line.replace(SECRET_TEXT, HIDDEN) : line
}

/** `12:03:04.123 INFO  message name=value ...`, for people; a stack follows on its own lines. */
function asText(line: string): string {
  const { level, time, msg, err, error, ...rest } = JSON.parse(line) as Record<string, unknown>
  const fields = Object.entries(rest).map(
    ([name, value]) => `${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`,
  )
  const head = `${String(time).slice(11, 23)} ${String(level).toUpperCase().padEnd(5)} ${msg ?? ''}`
  const problem = (err ?? error) as { stack?: string; message?: string } | undefined
  const stack =
    problem === undefined ? '' : `\n${problem?.stack ?? problem?.message ?? JSON.stringify(problem)}`
  return `${[head, ...fields].join(' ')}${stack}\n`
}
