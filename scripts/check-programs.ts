// Tests declare the programs they need (tests/support/programs.ts), and scripts/setup installs them. This check finds programs that a
// test uses and no table lists, programs that a test file does not declare, and programs whose package setup does not install.
import { globSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { MINIMAL, OPTIONAL, PACKAGES } from '../tests/support/programs.ts'

/** An argument names another tree, for the test of this script. */
const root = process.argv[2] ?? fileURLToPath(new URL('..', import.meta.url))
const TESTS = [
  '{packages,native,tests,bench}/**/*.test.ts',
  'tests/**/*.ts',
  'native/*/tests/*.ts',
  'packages/server/src/**/{suite,testing}/*.ts',
  'packages/server/src/**/{testing,harness,*.suite,*.scratch}.ts',
]
/** Every sandbox of the runtime `host` has these, and many tests use them inside; declaring them would be noise. */
const PROMISED = new Set(['python3', 'sudo'])
/** These are also English words or CLI commands, so only starting the program on this machine counts. */
const AMBIGUOUS = new Set(['less', 'make', 'ps', 'btrfs', 'ip', 'chromium'])
const NODE = new Set(['node', 'npm', 'npx'])
/** The commands in these files are data and are not run. */
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
        : `${file} starts ${program}, which no table of tests/support/programs.ts lists`,
    )
  }
}
const installed = installedBySetup()
for (const [program, name] of Object.entries(PACKAGES)) {
  if (!installed.has(name))
    problems.push(`No list of scripts/setup contains ${name}, which tests need for ${program}`)
}
for (const problem of problems) console.error(problem)
process.exitCode = problems.length > 0 ? 1 : 0

/** Programs that the file starts by name on this machine. */
function startedBy(text: string): string[] {
  const wraps = /function run\(program|const run = promisify\(execFile\)/.test(text) ? '|run' : ''
  const calls = new RegExp(
    `(?<![.\\w])(?:execFile|execFileSync|spawn|spawnSync${wraps})\\(\\s*'([^']+)'`,
    'g',
  )
  return [...text.matchAll(calls)].map(([, program]) => basename(program!))
}

/** Programs of the table at the start of a string or of a shell command. */
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
