/** What part of a file is asked for. Undefined: all of it. A suffix range has a negative start. */
export interface Range {
  start: number
  end?: number
}

/** One byte range. What is not one (other units, several ranges, nonsense) is ignored, as RFC 9110 lets a server do. */
export function parseRange(header: string | undefined): Range | undefined {
  const match = header === undefined ? null : /^bytes=\s*(\d*)-(\d*)\s*$/.exec(header)
  if (!match || (match[1] === '' && match[2] === '')) return undefined
  if (match[1] === '') return { start: -bounded(match[2]!) }
  const start = bounded(match[1]!)
  if (match[2] === '') return { start }
  const end = bounded(match[2]!)
  return end < start ? undefined : { start, end }
}

const bounded = (digits: string): number => Math.min(Number(digits), Number.MAX_SAFE_INTEGER)
