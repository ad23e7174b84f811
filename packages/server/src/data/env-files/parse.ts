// The .env dialect. A file is cut into segments; joined, they are the file again, byte for byte:
//
//   export KEY = "value"  # why        head `export KEY = `, raw `"value"`, tail `  # why`, then the end of the line
//
// Unquoted values end at ` #` or with the line. Single quotes and backticks are literal; double quotes know \n \r \t \" \\ \$ \`.
// Quoted values may have several lines. Any other line (no =, an unclosed quote) is kept and has no meaning.

export interface Pair {
  key: string
  value: string
  head: string
  raw: string
  tail: string
  end: string
}

/** A pair, or a line without meaning: a comment, a blank line or a broken one. */
export type Segment = Pair | string

/** The last value of a key wins. */
export function parseEnv(text: string): Record<string, string> {
  return variablesOf(parseSegments(text))
}

export function variablesOf(segments: readonly Segment[]): Record<string, string> {
  return Object.fromEntries(
    segments.flatMap((segment) => (isPair(segment) ? [[segment.key, segment.value]] : [])),
  )
}

export function isPair(segment: Segment): segment is Pair {
  return typeof segment !== 'string'
}

/** Also works on latin1 text, one character per byte: the syntax is ASCII, other characters are passed through. */
export function parseSegments(text: string): Segment[] {
  const segments: Segment[] = []
  const mark = /^(?:\uFEFF|\xEF\xBB\xBF)/.exec(text)?.[0] ?? ''
  if (mark) segments.push(mark)
  for (let at = mark.length; at < text.length; ) {
    const pair = pairAt(text, at)
    const length = pair ? textOf(pair).length : lineEnd(text, at).next - at
    segments.push(pair ?? text.slice(at, at + length))
    at += length
  }
  return segments
}

export function textOf(segment: Segment): string {
  return isPair(segment) ? segment.head + segment.raw + segment.tail + segment.end : segment
}

const HEAD = /[ \t]*(?:export[ \t]+)?([\w.-]+)[ \t]*=[ \t]*/y
const TAIL = /[ \t]*(?:#[^\n]*?)?(?=\r?\n|\r?$)/y
/** The text before the opening quote of a value. */
const ONLY_HEAD = /^[ \t]*(?:export[ \t]+)?[\w.-]+[ \t]*=[ \t]*$/

function pairAt(text: string, at: number): Pair | undefined {
  HEAD.lastIndex = at
  const found = HEAD.exec(text)
  if (!found) return undefined
  const [head, key] = found as unknown as [string, string]
  const from = at + head.length
  const value = /["'`]/.test(text[from] ?? '') ? quotedAt(text, from) : unquotedAt(text, from)
  return value && { key, head, ...value }
}

type Value = Omit<Pair, 'key' | 'head'>

function unquotedAt(text: string, from: number): Value {
  const { end, next } = lineEnd(text, from)
  const line = text.slice(from, end)
  const isSpaced = /[ \t]$/.test(text.slice(from - 1, from))
  const comment = isSpaced && line.startsWith('#') ? 0 : line.search(/[ \t]#/)
  let length = comment === -1 ? line.length : comment
  while (length > 0 && ' \t\r'.includes(line[length - 1]!)) length--
  const raw = line.slice(0, length)
  return { value: raw, raw, tail: line.slice(raw.length), end: text.slice(end, next) }
}

function quotedAt(text: string, from: number): Value | undefined {
  const close = closingQuote(text, from)
  if (close === -1) return undefined
  TAIL.lastIndex = close + 1
  const tail = TAIL.exec(text)?.[0]
  const lineStart = text.lastIndexOf('\n', close) + 1
  const isOneLine = lineStart <= from
  // A value like 'a'b begins with a quote and is not quoted.
  if (tail === undefined) return isOneLine ? unquotedAt(text, from) : undefined
  // An unclosed quote would end where the next value begins.
  if (!isOneLine && ONLY_HEAD.test(text.slice(lineStart, close))) return undefined
  const raw = text.slice(from, close + 1)
  const { end, next } = lineEnd(text, close + 1)
  return { value: unquote(raw), raw, tail, end: text.slice(end, next) }
}

function closingQuote(text: string, from: number): number {
  const quote = text[from]!
  if (quote !== '"') return text.indexOf(quote, from + 1)
  for (let at = from + 1; at < text.length; at++) {
    if (text[at] === '"') return at
    if (text[at] === '\\') at++
  }
  return -1
}

const ESCAPES: Record<string, string> = { n: '\n', r: '\r', t: '\t', '"': '"', '\\': '\\', $: '$', '`': '`' }

function unquote(raw: string): string {
  const inner = raw.slice(1, -1).replaceAll('\r\n', '\n')
  return raw[0] === '"' ? inner.replace(/\\([nrt"\\$`])/g, (_, letter: string) => ESCAPES[letter]!) : inner
}

/** Where the line at an index ends, without and with its line break. */
function lineEnd(text: string, at: number): { end: number; next: number } {
  const newline = text.indexOf('\n', at)
  if (newline === -1)
    return { end: text.endsWith('\r') && text.length > at ? text.length - 1 : text.length, next: text.length }
  return { end: newline > at && text[newline - 1] === '\r' ? newline - 1 : newline, next: newline + 1 }
}
