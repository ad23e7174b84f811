// How a file of each language is run.
import { compileFunction } from 'node:vm'
import type { Language } from '@islet/contract'

export interface Interpreter {
  /** Tried in this order. */
  programs: readonly string[]
  /** Between the program and the file. */
  args: readonly string[]
  extension: string
}

const FIXED: Record<Exclude<Language, 'node'>, Interpreter> = {
  // Unbuffered, so that what it prints to stdout and to stderr comes in order.
  python: { programs: ['python3', 'python'], args: ['-u'], extension: '.py' },
  deno: { programs: ['deno'], args: ['run', '--quiet', '--allow-all'], extension: '.ts' },
  bun: { programs: ['bun'], args: ['run'], extension: '.ts' },
  shell: { programs: ['bash', 'sh'], args: [], extension: '.sh' },
}

export function interpreterOf(language: Language, code: string): Interpreter {
  if (language !== 'node') return FIXED[language]
  return { programs: ['node', 'nodejs'], args: [], extension: isCommonJs(code) ? '.cjs' : '.mjs' }
}

/** Gives a module what only CommonJS has, from a file beside it that `node --require` loads first. */
export const COMMONJS_GLOBALS =
  'Object.assign(globalThis, { require, __dirname, __filename: process.argv[1] })\n'

export function needsCommonJsGlobals(extension: string, code: string): boolean {
  return extension === '.mjs' && /\b(?:require|__dirname|__filename)\b/.test(code)
}

/** Compiling takes time of the server; of more code the beginnings of its lines are looked at. */
const MAX_COMPILED = 256 * 1024
const PARAMETERS = ['exports', 'require', 'module', '__filename', '__dirname']
/** `await (x)` at the beginning of a line is a call of a function `await` to CommonJS. */
const AWAIT_FIRST = /^(?:(?:const|let|var)\s[^\n=]*=\s*|[\w$.]+\s*=\s*|return\s+)?await\s*[([`/+-]/m

/**
 * Whether Node would take it as the body of a CommonJS module: it is compiled as one, and never run. What is neither that
 * nor has a word of a module in it is broken, and CommonJS gives the plainer message.
 */
function isCommonJs(code: string): boolean {
  const body = code.replace(/^\uFEFF?#!/, '//')
  if (body.length > MAX_COMPILED) return !/^(?:import\s*[\w{*"']|export\s|.*\bawait\b)/m.test(body)
  try {
    compileFunction(body, PARAMETERS)
    return !AWAIT_FIRST.test(body)
  } catch {
    return !/\b(?:import|export|await)\b/.test(body)
  }
}
