// One parser per kind of value. A value that does not parse is a usage error, before the server is called.
import { parseCpuMillis, parseDurationMs, parseSizeBytes } from '@islet/contract/client'
import { InvalidArgumentError } from 'commander'
import { UsageError } from '../errors.ts'

export function duration(text: string): number {
  const ms = parseDurationMs(/^\d+$/.test(text) ? Number(text) : text)
  return ms ?? invalid('It must be like 500ms, 30s, 10m or 2h; a plain number is milliseconds.')
}

/** A duration, or 0 for `never`. */
export function lasting(text: string): number {
  return text === 'never' ? 0 : duration(text)
}

export function size(text: string): string {
  return parseSizeBytes(text) === undefined ? invalid('It must be like 512Mi, 2Gi or 500M.') : text
}

export function cpu(text: string): string {
  return parseCpuMillis(text) === undefined ? invalid('It must be like 2, 0.5 or 500m.') : text
}

export function integer(text: string): number {
  return /^\d+$/.test(text) ? Number(text) : invalid('It must be a whole number.')
}

/** KEY=VALUE; the option can be repeated. */
export function pair(text: string, previous: Record<string, string> = {}): Record<string, string> {
  const at = text.indexOf('=')
  if (at < 1) invalid('It must be KEY=VALUE.')
  return { ...previous, [text.slice(0, at)]: text.slice(at + 1) }
}

export function many(text: string, previous: string[] = []): string[] {
  return [...previous, text]
}

/** Separated by commas, and the option can be repeated. The commas of `httpx[http2,zstd]>=0.27,<1` do not separate. */
export function list(text: string, previous: string[] = []): string[] {
  return [...previous, ...text.split(/,(?![^[]*\])(?=[A-Za-z0-9@])/)]
}

/** For JSON in an argument or on stdin. */
export function parseJson(text: string, hint: string) {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new UsageError(`That is not JSON: ${(error as Error).message}.`, hint)
  }
}

export function invalid(message: string): never {
  throw new InvalidArgumentError(message)
}
