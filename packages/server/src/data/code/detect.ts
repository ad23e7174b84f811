// Detects the language of a piece of code: by its shebang, else by the scores of the rules.
import type { Language } from '@islet/contract'
import { JAVASCRIPT, PYTHON, type Rule, SHELL, TYPESCRIPT } from './rules.ts'

/** Only this much is examined; the language of real code shows within it. */
const MAX_CHARACTERS = 16 * 1024
const MAX_LINE = 500
/** Patterns may match a run of white space in several ways, so long runs are cut; blank lines are dropped. */
const LONG_SPACE = /\s{5,}/g
/** More matches of a rule than this do not count. */
const MAX_MATCHES = 3

const SHEBANGS: readonly [RegExp, Language][] = [
  [/\b(?:tsx|ts-node)\b/, 'typescript'],
  [/\bdeno\b/, 'deno'],
  [/\bbun\b/, 'bun'],
  [/\b(?:node|nodejs)\b/, 'node'],
  [/\bpython[\d.]*\b/, 'python'],
  [/\b(?:ba|da|z|k|a)?sh\b/, 'shell'],
]

export function detectLanguage(code: string): Language {
  const text = beginning(code)
  const shebang = /^#!.*/.exec(text)?.[0]
  if (shebang) {
    const found = SHEBANGS.find(([pattern]) => pattern.test(shebang))
    if (found) return found[1]
  }
  const plain = withoutText(text)
  const python = score(PYTHON, plain)
  const typescript = score(TYPESCRIPT, plain)
  const javascript = score(JAVASCRIPT, plain) + typescript
  const shell = score(SHELL, plain)
  if (javascript > python && javascript >= shell) {
    const runtime = javascriptRuntime(text, plain.bare)
    return runtime === 'node' && typescript > 0 ? 'typescript' : runtime
  }
  if (shell > python) return 'shell'
  if (python > 0) return 'python'
  return looksLikeWords(plain.bare) ? 'shell' : 'python'
}

/** The forms of the code that the rules are tried on. */
export interface Plain {
  /** Strings are empty, comments are only their mark, heredocs have no body. */
  bare: string
  /** As `bare`, but with what is between double quotes: a shell expands it. */
  quoted: string
}

function beginning(code: string): string {
  return code
    .slice(0, MAX_CHARACTERS)
    .replace(/^\uFEFF/, '')
    .replace(/\r\n?/g, '\n')
    .split('\n')
    .map((line) => line.slice(0, MAX_LINE).replace(LONG_SPACE, '    '))
    .filter((line) => line.trim() !== '')
    .join('\n')
}

const HEREDOC = /<<[-~]?[ \t]*(['"]?)([A-Za-z_]\w*)\1/g

/** A body ends at a line that equals the word after `<<`; without such a line it is not a heredoc. */
function withoutHeredocs(text: string): string {
  const lines = text.split('\n')
  const trimmed = lines.map((line) => line.trim())
  const last = new Map(trimmed.map((line, index) => [line, index]))
  const kept: string[] = []
  for (let index = 0; index < lines.length; index++) {
    const line = lines[index]!
    kept.push(line)
    const word = [...line.matchAll(HEREDOC)].find(([, , name]) => last.get(name!)! > index)?.[2]
    if (word !== undefined) index = trimmed.indexOf(word, index + 1)
  }
  return kept.join('\n')
}

function withoutText(text: string): Plain {
  const quoted = withoutHeredocs(text)
    .replace(/("""|''')[\s\S]*?(?:\1|$)/g, '$1$1')
    .replace(/^([ \t]*(?:#(?!!)|\/\/)).*/gm, '$1')
    .replace(/^([ \t]*\/\*)[\s\S]*?(?:\*\/|$(?![\s\S]))/gm, '$1*/')
    .replace(/'(?:\\.|[^'\\\n])*'/g, "''")
    .replace(/\\[\s\S]|`(?:\\[\s\S]|[^`\\])*`/g, withoutTemplate)
  const bare = quoted.replace(/"(?:\\.|[^"\\\n])*"/g, '""').replace(/[ \t](#|\/\/)[ \t].*/g, ' $1')
  return { bare, quoted }
}

/** Escaped characters are matched too and kept, so that an escaped backtick does not begin a template. */
function withoutTemplate(match: string): string {
  if (!match.startsWith('`')) return match
  return match.includes('${') ? '`$`' : '``'
}

function score(rules: readonly Rule[], plain: Plain): number {
  let sum = 0
  for (const { weight, pattern, sees = 'bare' } of rules) {
    const matches = plain[sees].match(pattern)?.length ?? 0
    sum += weight * Math.min(matches, MAX_MATCHES)
  }
  return sum
}

/** The names of imports are in strings, so imports are searched in the whole text. */
function javascriptRuntime(text: string, bare: string): Language {
  if (/\b(?:from|import)\s*\(?\s*["'](?:jsr:|npm:|https?:\/\/)/.test(text)) return 'deno'
  if (/\b(?:from|import|require)\s*\(?\s*["']bun(?::\w+)?["']/.test(text)) return 'bun'
  // Code that tests for the runtime runs on others too.
  if (/\bDeno\.\w/.test(bare) && !/typeof\s+Deno|globalThis\.Deno/.test(bare)) return 'deno'
  if (/\bBun\.\w/.test(bare) && !/typeof\s+Bun|globalThis\.Bun/.test(bare)) return 'bun'
  return 'node'
}

/** An unknown command and its arguments. */
function looksLikeWords(bare: string): boolean {
  return bare
    .split('\n')
    .filter((line) => line.trim() !== '' && !/^\s*#/.test(line))
    .every((line) => /^\s*[a-z][\w.+-]*(?:\s+[^\s=()]+)*\s*$/.test(line))
}
