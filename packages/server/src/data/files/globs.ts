// Globs of ignored paths. A path is ignored when it, or a directory above it, matches a pattern.
//
//   no slash    node_modules, *.log     any name below the root
//   a slash     src/**/*.tmp            the path below the root
//   absolute    /work/dist              the absolute path
//
// `*` and `?` match within a name, leading dots included; `[a-z]` and `[!a-z]` match one character; `{a,b}` matches either; `**`
// between slashes matches any number of directories, also none; `\` takes the next character literally. Regular expressions are
// not used: a pattern of many stars costs at most its length times the length of the name.
import { posix } from 'node:path'
import { IsletError } from '@islet/contract'

/** `{a,b}{c,d}` are four patterns. A list that expands to more, or to more characters, is a mistake or an attack. */
const MAX_ALTERNATIVES = 1024
const MAX_CHARACTERS = 32 * 1024
const MAX_BRACE_DEPTH = 16
/** Directories whose result is cached: consecutive events are mostly in the same directory. */
const MAX_REMEMBERED = 256

/** Compiled once. True: the absolute path is ignored. The root itself and paths outside it never are. */
export function createIgnore(patterns: readonly string[], root: string): (path: string) => boolean {
  const { names, paths } = compile(patterns)
  const base = root === '/' ? '' : root
  const remembered = new Map<string, boolean>()

  const matches = (path: string): boolean => {
    const name = charactersOf(posix.basename(path))
    if (names.some((part) => matchesPart(part, name))) return true
    if (!paths.length) return false
    const absolute = path.slice(1).split('/').map(charactersOf)
    const below = absolute.slice(base ? base.split('/').length - 1 : 0)
    return paths.some((glob) => matchesParts(glob.parts, glob.isAbsolute ? absolute : below))
  }
  const isIgnoredDirectory = (path: string): boolean => {
    if (path === root || path.length <= base.length) return false
    const known = remembered.get(path)
    if (known !== undefined) return known
    const verdict = isIgnored(path)
    if (remembered.size >= MAX_REMEMBERED) remembered.clear()
    remembered.set(path, verdict)
    return verdict
  }
  const isIgnored = (path: string): boolean => isIgnoredDirectory(posix.dirname(path)) || matches(path)

  if (!names.length && !paths.length) return () => false
  return (path) => path.startsWith(`${base}/`) && path !== root && isIgnored(path)
}

/**
 * The patterns for names that fnmatch(3) understands the same way, byte by byte: no slash, no `?`, no `[`. The guest can skip
 * what they match.
 */
export function plainNames(patterns: readonly string[]): string[] {
  return alternativesOf(patterns).filter((text) => !/[/?[\]]/.test(text) && text !== '')
}

type Token = { kind: 'literal'; text: string } | { kind: 'any' } | { kind: 'star' } | Class
interface Class {
  kind: 'class'
  negated: boolean
  ranges: [low: number, high: number][]
}
interface Part {
  tokens: Token[]
  /** The shortest name that can match. */
  shortest: number
  isGlobstar: boolean
}

function compile(patterns: readonly string[]) {
  const names: Part[] = []
  const paths: { isAbsolute: boolean; parts: Part[] }[] = []
  for (const text of alternativesOf(patterns)) {
    const parts = text.split('/').filter((part) => part !== '' && part !== '.')
    if (!parts.length) continue
    if (text.includes('/')) paths.push({ isAbsolute: text.startsWith('/'), parts: parts.map(compilePart) })
    else names.push(compilePart(parts[0]!))
  }
  return { names, paths }
}

/** Expands braces, and strips a leading `./` and a trailing `/`. */
function alternativesOf(patterns: readonly string[]): string[] {
  const found: string[] = []
  let characters = 0
  for (const pattern of patterns) {
    for (const text of expandBraces(pattern, 0)) {
      characters += text.length
      if (found.length >= MAX_ALTERNATIVES || characters > MAX_CHARACTERS) throw tooMany()
      found.push(trim(text))
    }
  }
  return [...new Set(found)]
}

function trim(text: string): string {
  let start = 0
  let end = text.length
  while (text.startsWith('./', start)) {
    start += 2
    while (text[start] === '/') start++
  }
  while (end > start + 1 && text[end - 1] === '/') end--
  return text.slice(start, end)
}

function expandBraces(pattern: string, depth: number): string[] {
  const group = findGroup(pattern)
  if (!group) return [pattern]
  if (depth >= MAX_BRACE_DEPTH) throw tooMany()
  const before = pattern.slice(0, group.start)
  const tails = expandBraces(pattern.slice(group.end + 1), depth + 1)
  const middles = group.choices.flatMap((choice) => expandBraces(choice, depth + 1))
  if (middles.length * tails.length > MAX_ALTERNATIVES) throw tooMany()
  return middles.flatMap((middle) => tails.map((tail) => before + middle + tail))
}

/** The first `{...}` that is closed and has a comma; other braces are plain characters. */
function findGroup(pattern: string) {
  const open: { start: number; commas: number[] }[] = []
  let first: { start: number; end: number; commas: number[] } | undefined
  for (let at = 0; at < pattern.length; at++) {
    const character = pattern[at]
    if (character === '\\') at++
    else if (character === '{') open.push({ start: at, commas: [] })
    else if (character === ',') open.at(-1)?.commas.push(at)
    else if (character === '}') {
      const group = open.pop()
      if (group?.commas.length && (!first || group.start < first.start)) first = { ...group, end: at }
      if (first && !open.length) break
    }
  }
  if (!first) return undefined
  const edges = [first.start, ...first.commas, first.end]
  const choices = edges.slice(1).map((edge, index) => pattern.slice(edges[index]! + 1, edge))
  return { start: first.start, end: first.end, choices }
}

function compilePart(text: string): Part {
  const characters = charactersOf(text)
  const tokens: Token[] = []
  for (let at = 0; at < characters.length; at++) {
    const character = characters[at]!
    if (character === '*') {
      if (tokens.at(-1)?.kind !== 'star') tokens.push({ kind: 'star' })
    } else if (character === '?') tokens.push({ kind: 'any' })
    else if (character === '[') {
      const found = compileClass(characters, at)
      tokens.push(found?.token ?? { kind: 'literal', text: '[' })
      at = found?.end ?? at
    } else if (character === '\\' && at + 1 < characters.length)
      tokens.push({ kind: 'literal', text: characters[++at]! })
    else tokens.push({ kind: 'literal', text: character })
  }
  const shortest = tokens.filter((token) => token.kind !== 'star').length
  return { tokens, shortest, isGlobstar: text === '**' }
}

/** Undefined: the bracket is not closed and so a plain character. */
function compileClass(characters: string[], start: number): { token: Class; end: number } | undefined {
  const negated = characters[start + 1] === '!' || characters[start + 1] === '^'
  const first = start + (negated ? 2 : 1)
  const ranges: Class['ranges'] = []
  for (let at = first; at < characters.length; at++) {
    if (characters[at] === ']' && at > first) return { token: { kind: 'class', negated, ranges }, end: at }
    if (characters[at] === '\\') at++
    const low = characters[at]
    const isRange = characters[at + 1] === '-' && at + 2 < characters.length && characters[at + 2] !== ']'
    const high = isRange ? characters[at + 2] : low
    if (low === undefined || high === undefined) return undefined
    ranges.push([low.codePointAt(0)!, high.codePointAt(0)!])
    if (isRange) at += 2
  }
  return undefined
}

/** Backtracking to the latest star is enough: an earlier one could match no more than this one. */
function matchesAll<P, T>(
  pattern: P[],
  text: T[],
  isStar: (p: P) => boolean,
  isOne: (p: P, t: T) => boolean,
) {
  let at = 0
  let star = -1
  let resume = 0
  for (let next = 0; next < text.length; ) {
    if (at < pattern.length && isStar(pattern[at]!)) {
      star = at++
      resume = next
    } else if (at < pattern.length && isOne(pattern[at]!, text[next]!)) {
      at++
      next++
    } else if (star >= 0) {
      at = star + 1
      next = ++resume
    } else return false
  }
  while (at < pattern.length && isStar(pattern[at]!)) at++
  return at === pattern.length
}

const isStarToken = (token: Token): boolean => token.kind === 'star'
const isGlobstar = (part: Part): boolean => part.isGlobstar

function matchesPart(part: Part, name: string[]): boolean {
  if (part.shortest > name.length) return false
  return matchesAll(part.tokens, name, isStarToken, matchesToken)
}

function matchesParts(parts: Part[], names: string[][]): boolean {
  return matchesAll(parts, names, isGlobstar, matchesPart)
}

function matchesToken(token: Token, character: string): boolean {
  if (token.kind === 'literal') return token.text === character
  if (token.kind !== 'class') return true
  const code = character.codePointAt(0)!
  return token.ranges.some(([low, high]) => low <= code && code <= high) !== token.negated
}

function charactersOf(text: string): string[] {
  return Array.from(text)
}

function tooMany(): IsletError {
  return new IsletError(
    'bad_request',
    `The globs stand for more than ${MAX_ALTERNATIVES} patterns, or ${MAX_CHARACTERS} characters together.`,
  )
}
