// Edits of a .env file. Unchanged parts keep their bytes. A written value reads back as it was given, here and, if a shell can
// represent it, with `. ./.env`.
import { IsletError } from '@islet/contract'
import { isPair, type Pair, parseEnv, parseSegments, type Segment, textOf, variablesOf } from './parse.ts'

/** Changes the last line of an existing key, and adds a line for a new one. */
export function updateEnv(text: string, variables: Record<string, string>): string {
  const segments = parseSegments(text)
  const wanted = { ...variablesOf(segments), ...variables }
  for (const quote of [readable, oneLine]) {
    const changed = replace(segments, variables, quote)
    if (isSame(parseEnv(changed), wanted)) return changed
  }
  throw unclosed(segments)
}

/** Removes all lines of these keys; returns the keys that were found. */
export function removeEnv(text: string, keys: readonly string[]): { text: string; removed: string[] } {
  const segments = parseSegments(text)
  const before = variablesOf(segments)
  const gone = new Set(keys.filter((key) => Object.hasOwn(before, key)))
  const kept = segments.filter((segment) => !isPair(segment) || !gone.has(segment.key))
  const changed = kept.map(textOf).join('')
  if (!isSame(parseEnv(changed), variablesOf(kept))) throw unclosed(segments)
  return { text: changed, removed: [...gone] }
}

type Quote = (value: string) => string

function replace(segments: readonly Segment[], variables: Record<string, string>, quote: Quote): string {
  const last = new Map<string, Pair>()
  for (const segment of segments) if (isPair(segment)) last.set(segment.key, segment)
  const lines = segments.map((segment) => {
    if (!isPair(segment) || last.get(segment.key) !== segment) return textOf(segment)
    const value = Object.hasOwn(variables, segment.key) ? variables[segment.key]! : segment.value
    return textOf(value === segment.value ? segment : withValue(segment, quote(value)))
  })
  const end = lineEndOf(segments)
  const added = Object.keys(variables)
    .filter((key) => !last.has(key))
    .map((key) => `${key}=${quote(variables[key]!)}${end}`)
  const text = lines.join('')
  const isCut = added.length > 0 && /[^\n]$/.test(text.replace(/^(?:\uFEFF|\xEF\xBB\xBF)/, ''))
  return text + (isCut ? end : '') + added.join('')
}

function withValue(pair: Pair, raw: string): Pair {
  return { ...pair, raw, tail: pair.tail.startsWith('#') ? ` ${pair.tail}` : pair.tail }
}

function lineEndOf(segments: readonly Segment[]): string {
  const first = segments.map(textOf).find((text) => text.endsWith('\n'))
  return first?.endsWith('\r\n') ? '\r\n' : '\n'
}

/** Unquoted, in single quotes or in double quotes: the first form that can hold the value. Line breaks are kept, as shells need. */
function readable(value: string): string {
  if (/^[\w./:@%+,=-]*$/.test(value)) return value
  const escaped = value.replace(/["\\$`]/g, '\\$&').replaceAll('\r', '\\r')
  const forms = value.includes('\r') ? [] : [`'${value}'`, `"${value}"`].filter((form) => !misleads(form))
  forms.push(`"${escaped}"`)
  return forms.find((form) => parseEnv(`K=${form}`).K === value) ?? oneLine(value)
}

/** A shell would expand these in double quotes. */
function misleads(form: string): boolean {
  return form.startsWith('"') && /[$`\\]/.test(form)
}

/** On one line, so that an open quote elsewhere cannot reach it; but a shell does not read its `\n` as a line break. */
function oneLine(value: string): string {
  const escaped = value.replace(/["\\$`]/g, '\\$&')
  return `"${escaped.replaceAll('\n', '\\n').replaceAll('\r', '\\r')}"`
}

function isSame(a: Record<string, string>, b: Record<string, string>): boolean {
  const keys = Object.keys(a)
  return (
    keys.length === Object.keys(b).length && keys.every((key) => Object.hasOwn(b, key) && a[key] === b[key])
  )
}

/** An unclosed quote can reach into lines that are written after it. */
function unclosed(segments: readonly Segment[]): IsletError {
  const open = segments.findIndex((segment) => !isPair(segment) && /^[^#]*=\s*["'`]/.test(segment))
  const before = segments.slice(0, open).map(textOf).join('')
  return new IsletError(
    'conflict',
    `The change cannot be made because of the unclosed quote in line ${before.split('\n').length}.`,
    { hint: 'Close that quote, or remove the line, with the files routes.' },
  )
}
