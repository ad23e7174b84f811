// Tests name the programs they need (tests/support/programs.ts), and scripts/setup installs them. This finds a program that a test uses
// and no table has, one that a test file does not name, and one whose package nobody installs.
import { globSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { MINIMAL, OPTIONAL, PACKAGES } from '../tests/support/programs.ts'

/** Or another tree, for the test of this. */
const root = process.argv[2] ?? fileURLToPath(new URL('..', import.meta.url))
const TESTS = [
  '{packages,native,tests,bench}/**/*.test.ts',
  'tests/**/*.ts',
  'native/*/tests/*.ts',
  'packages/server/src/**/{suite,testing}/*.ts',
  'packages/server/src/**/{testing,harness,*.suite,*.scratch}.ts',
]
/** Sandboxes of the runtime `host` are promised these; so many tests use them inside that naming them would say nothing. */
const PROMISED = new Set(['python3', 'sudo'])
/** Also words of English or of the CLI, so that only the start of a program on this machine counts. */
const AMBIGUOUS = new Set(['less', 'make', 'ps', 'btrfs', 'ip', 'chromium'])
const NODE = new Set(['node', 'npm', 'npx'])
/** Their commands are texts to be looked at; nobody runs them. */
const TEXTS = new Set([
  'packages/server/src/data/code/detect.test.ts',
  'tests/programs.test.ts',
  'tests/support/programs.ts',
])

const problems: string[] = []
for (const file of new Set(globSync(TESTS, { cwd: root, exclude: ['**/node_modules'] }))) {
  if (TEXTS.has(file)) continue
  const text = readFileSync(join(root, file), 'utf8')
  const named = new Set([...text.matchAll(/\bneeds\(([^)]*)\)/g)].flatMap(([, list]) => wordsIn(list!)))
  for (const program of new Set([...startedBy(text), ...usedInside(text)])) {
    if ([MINIMAL, OPTIONAL, NODE, named].some((names) => names.has(program))) continue
    problems.push(
      program in PACKAGES
        ? `${file} uses ${program}: call needs('${program}') of tests/support/programs.ts at its top`
        : `${file} starts ${program}, which is in no table of tests/support/programs.ts`,
    )
  }
}
const installed = installedBySetup()
for (const [program, name] of Object.entries(PACKAGES)) {
  if (!installed.has(name))
    problems.push(`No list of scripts/setup has ${name}, which tests need for ${program}`)
}
for (const problem of problems) console.error(problem)
process.exitCode = problems.length > 0 ? 1 : 0

/** Programs that are started by name on this machine. */
function startedBy(text: string): string[] {
  const wraps = /function run\(program|const run = promisify\(execFile\)/.test(text) ? '|run' : ''
  const calls = new RegExp(
    `(?<![.\\w])(?:execFile|execFileSync|spawn|spawnSync${wraps})\\(\\s*'([^']+)'`,
    'g',
  )
  return [...text.matchAll(calls)].map(([, program]) => basename(program!))
}

/** Programs of the table that stand where a command begins: of a string, or of a part of a line for the shell. */
function usedInside(text: string): string[] {
  const candidates = Object.keys(PACKAGES).filter((name) => !PROMISED.has(name) && !AMBIGUOUS.has(name))
  return candidates.filter((name) =>
    new RegExp(`(?:['"\`;|&(\\n]|sudo|exec)[ ]*${name.replace('.', '\\.')} [-\\w/$"'.{]`).test(text),
  )
}

/** The packages of `runtime=(…)`, `compiling=(…)` and `testing=(…)`. */
function installedBySetup(): Set<string> {
  const text = readFileSync(join(root, 'scripts/setup'), 'utf8')
  const lists = [...text.matchAll(/^(?:runtime|compiling|testing)=\(([^)]*)\)/gm)]
  return new Set(lists.flatMap(([, list]) => list!.replace(/#.*$/gm, '').split(/\s+/).filter(Boolean)))
}

function wordsIn(list: string): string[] {
  return [...list.matchAll(/'([^']+)'/g)].map(([, word]) => word!)
}
