// Parsers of settings. Each returns the value or throws an Error that says what is expected.
import { BlockList, isIP } from 'node:net'
import { resolve } from 'node:path'
import { parseDurationMs, parseSizeBytes } from '@islet/contract'

export type Parse<T> = (text: string) => T

export function text(value: string): string {
  if (value === '' || value.includes('\0')) throw new Error('it must not be empty')
  return value
}

export function path(value: string): string {
  return resolve(text(value))
}

export function host(value: string): string {
  const bare = value.replace(/^\[(.*)\]$/, '$1')
  if (isIP(bare) || /^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?$/.test(bare)) return bare
  throw new Error('it must be an IP address or a host name')
}

/** The name of a group as groupadd takes it, or nothing. */
export function group(value: string): string {
  if (value === '' || /^[a-z_][a-z0-9_-]{0,30}[a-z0-9_$-]?$/.test(value)) return value
  throw new Error("it must be the name of a group like 'islet', or empty")
}

/** Without a slash at its end. */
export function url(value: string): string {
  const parsed = URL.canParse(value) ? new URL(value) : undefined
  if (!parsed || !/^https?:$/.test(parsed.protocol) || parsed.search || parsed.hash || parsed.username)
    throw new Error("it must be a URL like 'https://islet.example.com'")
  return parsed.href.replace(/\/+$/, '')
}

/** As browsers write it: no path and no default port. */
export function origin(value: string): string {
  if (URL.canParse(value) && /^https?:/.test(value) && new URL(value).origin === value) return value
  throw new Error(`${JSON.stringify(value)} is not an origin like https://app.example.com`)
}

export function integer(min: number, max: number): Parse<number> {
  return (value) => {
    const number = /^\d+$/.test(value) ? Number(value) : Number.NaN
    if (number >= min && number <= max) return number
    throw new Error(`it must be a whole number from ${min} to ${max}`)
  }
}

/** `auto`: the value is derived from the machine. */
export function autoOr<T>(parse: Parse<T>): Parse<T | 'auto'> {
  return (value) => {
    if (value === 'auto') return 'auto'
    try {
      return parse(value)
    } catch (error) {
      throw new Error(`${(error as Error).message}, or auto`)
    }
  }
}

export function oneOf<const T extends readonly string[]>(values: T): Parse<T[number]> {
  return (value) => {
    if (values.includes(value)) return value
    throw new Error(`it must be one of ${values.join(', ')}`)
  }
}

export function size(value: string): number {
  const bytes = parseSizeBytes(value)
  if (bytes !== undefined && bytes > 0) return bytes
  throw new Error("it must be a size like '50Gi'")
}

export function duration(value: string): number {
  const ms = parseDurationMs(/^\d+$/.test(value) ? Number(value) : value)
  if (ms !== undefined) return ms
  throw new Error("it must be a duration like '10s'")
}

export function list<T>(parse: Parse<T>): Parse<T[]> {
  return (value) =>
    value
      .split(',')
      .map((item) => item.trim())
      .filter((item) => item !== '')
      .map(parse)
}

export function address(value: string): string {
  if (isIP(value)) return value
  throw new Error(`${JSON.stringify(value)} is not an IP address`)
}

export function cidr(value: string): string {
  const [base = '', bits = '', ...rest] = value.split('/')
  const family = isIP(base)
  try {
    if (family === 0 || !/^\d{1,3}$/.test(bits) || rest.length > 0) throw new Error('not a range')
    new BlockList().addSubnet(base, Number(bits), family === 6 ? 'ipv6' : 'ipv4')
    return value
  } catch {
    throw new Error(`${JSON.stringify(value)} is not a range like 10.1.0.0/16`)
  }
}
