import { IsletError } from '@islet/contract'

/** The query of a URL, decoded strictly: a key given more than once becomes a list. */
export function parseQuery(url: string): Record<string, string | string[]> {
  const query: Record<string, string | string[]> = Object.create(null)
  const start = url.indexOf('?')
  if (start === -1) return query
  const end = url.indexOf('#', start)
  for (const pair of url.slice(start + 1, end === -1 ? undefined : end).split('&')) {
    if (pair === '') continue
    const equals = pair.indexOf('=')
    const name = decode(equals === -1 ? pair : pair.slice(0, equals))
    const value = equals === -1 ? '' : decode(pair.slice(equals + 1))
    const before = query[name]
    if (before === undefined) query[name] = value
    else if (Array.isArray(before)) before.push(value)
    else query[name] = [before, value]
  }
  return query
}

/** Runs after the schemas, which refuse a NUL in a path with their own code. */
export function refuseNul(query: Record<string, string | string[]>): void {
  for (const name in query) {
    const value = query[name]!
    const hasNul = Array.isArray(value) ? value.some((item) => item.includes('\0')) : value.includes('\0')
    if (hasNul || name.includes('\0')) throw new IsletError('bad_request', 'The query holds a NUL character.')
  }
}

function decode(text: string): string {
  if (!text.includes('%') && !text.includes('+')) return text
  try {
    return decodeURIComponent(text.replaceAll('+', ' '))
  } catch {
    throw new IsletError('bad_request', 'The query is not valid percent-encoded UTF-8.')
  }
}
