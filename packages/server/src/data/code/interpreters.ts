// How a file of each language is run.
import { compileFunction } from 'node:vm'
import type { Language } from '@islet/contract'

/** One way to run a file of a language. */
export interface Interpreter {
  program: string
  /** Arguments before the file. */
  args: readonly string[]
  extension: string
  /** Sources of files that `--require` loads before the code. */
  preloads?: readonly string[]
  /** Whether the program exists but cannot run this language. The code has not begun then. */
  isUnable?(result: { exitCode: number; stderr: string }): boolean
}

/** In the order in which they are tried. */
export function interpretersOf(language: Language, code: string): readonly Interpreter[] {
  if (language === 'node') return node(code)
  return language === 'typescript' ? typescript(code) : FIXED[language]
}

const FIXED: Record<Exclude<Language, 'node' | 'typescript'>, readonly Interpreter[]> = {
  // Unbuffered, so that stdout and stderr come in order.
  python: ['python3', 'python'].map((program) => ({ program, args: ['-u'], extension: '.py' })),
  deno: [{ program: 'deno', args: ['run', '--quiet', '--allow-all'], extension: '.ts' }],
  bun: [{ program: 'bun', args: ['run'], extension: '.ts' }],
  shell: ['bash', 'sh'].map((program) => ({ program, args: [], extension: '.sh' })),
}
const NODES = ['node', 'nodejs']

function node(code: string): Interpreter[] {
  const isModule = !isCommonJs(code)
  const extension = isModule ? '.mjs' : '.cjs'
  return NODES.map((program) => ({ program, args: [], extension, preloads: globalsFor(code, isModule) }))
}

/** Node since 22.18; else any other program in the sandbox that runs TypeScript. */
function typescript(code: string): Interpreter[] {
  const isModule = MODULE_SYNTAX.test(code)
  const extension = isModule ? '.mts' : '.cts'
  const globals = globalsFor(code, isModule)
  const flags = TRANSFORMED_SYNTAX.test(code.slice(0, MAX_LOOKED_AT)) ? [TRANSFORM] : []
  return [
    ...NODES.map((program) => ({
      program,
      args: ['--disable-warning=ExperimentalWarning', ...flags],
      extension,
      preloads: [ONLY_WITH_TYPESCRIPT, ...globals],
      isUnable: isUnableNode,
    })),
    { program: 'tsx', args: [], extension, preloads: globals },
    // It compiles modules to CommonJS; otherwise the result would depend on a package.json nearby.
    {
      program: 'ts-node',
      args: ['--transpileOnly', '--compilerOptions', '{"module":"commonjs"}'],
      extension: '.cts',
    },
    ...FIXED.bun,
    // The extension tells it whether the file is CommonJS or a module.
    ...FIXED.deno.map((deno) => ({ ...deno, extension })),
  ]
}

const TRANSFORM = '--experimental-transform-types'
/** Syntax that is more than types: Node has to transform it and cannot just strip it. */
const TRANSFORMED_SYNTAX =
  /^[ \t]*(?:(?:export|declare|const)\s+){0,3}(?:enum|namespace|module)\s+[\w.]+\s*\{|\bconstructor\s*\([^)]{0,1000}\b(?:public|private|protected|readonly)\s|^[ \t]*import\s+\w+\s*=/m
const MODULE_SYNTAX = /^[ \t]*(?:import\s*[\w{*"'.]|export\b)|\bawait\b|\bimport\.meta\b/m
const UNABLE = 'islet: this Node does not run TypeScript'
const UNABLE_EXIT_CODE = 9 // Node's own for an option that it does not know

/** Runs before the code: an older Node would fail with an error about the file name. */
const ONLY_WITH_TYPESCRIPT = `if (!process.features.typescript) { console.error(${JSON.stringify(UNABLE)}); process.exit(${UNABLE_EXIT_CODE}) }\n`

function isUnableNode({ exitCode, stderr }: { exitCode: number; stderr: string }): boolean {
  return (
    exitCode === UNABLE_EXIT_CODE &&
    (stderr.trim() === UNABLE || (stderr.length < 1000 && /^\S*node\S*: bad option: --\S+\s*$/.test(stderr)))
  )
}

/** Gives a module the globals of CommonJS. */
const COMMONJS_GLOBALS = 'Object.assign(globalThis, { require, __dirname, __filename: process.argv[1] })\n'

function globalsFor(code: string, isModule: boolean): string[] {
  return isModule && /\b(?:require|__dirname|__filename)\b/.test(code) ? [COMMONJS_GLOBALS] : []
}

/** Compiling and searching block the server. Of longer code only this much, or the beginnings of its lines, is examined. */
const MAX_LOOKED_AT = 256 * 1024
const PARAMETERS = ['exports', 'require', 'module', '__filename', '__dirname']
/** In CommonJS `await (x)` at the beginning of a line is a call of a function named `await`. */
const AWAIT_FIRST = /^(?:(?:const|let|var)\s[^\n=]*=\s*|[\w$.]+\s*=\s*|return\s+)?await\s*[([`/+-]/m

/**
 * Whether Node accepts it as the body of a CommonJS module: it is compiled as one, never run. Code that does not compile and has
 * no module keyword is broken; CommonJS gives the clearer message for it.
 */
function isCommonJs(code: string): boolean {
  const body = code.replace(/^\uFEFF?#!/, '//')
  if (body.length > MAX_LOOKED_AT) return !/^(?:import\s*[\w{*"']|export\s|.*\bawait\b)/m.test(body)
  try {
    compileFunction(body, PARAMETERS)
    return !AWAIT_FIRST.test(body)
  } catch {
    return !/\b(?:import|export|await)\b/.test(body)
  }
}
