// A run as it is kept: results/latest.json with everything, results/board.md to read, the plots, and the section of the README.
import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from '../tests/support/server.ts'
import type { Row } from './figure.ts'
import { inWords, type Machine } from './machine.ts'
import { type Plot, plotsOf } from './plot/plots.ts'
import type { Ratios } from './ratios.ts'
import { fullTable, shortTable } from './table.ts'

export interface Board {
  machine: Machine
  /** Of every figure, how it is taken. */
  methods: Record<string, string>
  rows: Row[]
  /** Every operation that failed, Docker's and the floor's too, in words. */
  failures: string[]
}

const RESULTS = 'bench/results'
export const GUARD_FILE = `${RESULTS}/guard.json`
const COMMAND = 'npm ci && npm run bench -- --docker'
const MARKS = ['<!-- board -->', '<!-- /board -->'] as const

/** What the README shows besides what has a budget. */
const SHOWN = [
  'create-unlike-first',
  'interactive-sequential',
  'interactive-staggered',
  'interactive-burst',
  'exec-32',
  'first-byte',
  'fork-warm-fresh-first',
  'wake-warm',
  'scale-500-first',
  'scale-500-exec',
  'scale-busy-exec',
]

export function writeBoard(board: Board): void {
  mkdirSync(join(root, RESULTS), { recursive: true })
  const plots = plotsOf(board.rows)
  writeJson(`${RESULTS}/latest.json`, board)
  write(`${RESULTS}/board.md`, boardPage(board))
  for (const { file, drawing } of plots) write(`${RESULTS}/${file}`, drawing)
  const readme = readFileSync(join(root, 'README.md'), 'utf8')
  write('README.md', replaceSection(readme, readmeSection(board, plots)))
}

/** What `bench/guard.ts` compares with. */
export function writeGuard(machine: Machine, ratios: Ratios): void {
  writeJson(GUARD_FILE, { machine, ratios })
}

/** What a run prints. */
export function boardPage({ machine, methods, rows, failures }: Board): string {
  const lines = [
    '# The board',
    '',
    `${inWords(machine)}. Times are in the unit of the row; \`faster\` is how many times`,
  ]
  lines.push(
    'faster than Docker, `× floor` how many times what the machine needs at least.',
    '',
    fullTable(rows),
    '',
  )
  lines.push(`Failed operations: ${failures.length}`, '')
  for (const [failure, times] of counted(failures)) lines.push(`- ${times} × ${failure}`)
  if (failures.length > 0) lines.push('')
  lines.push('## Method', '')
  for (const [name, method] of Object.entries(methods)) lines.push(`- **${name}**: ${method}`)
  return `${lines.join('\n')}\n`
}

export function readmeSection(
  { machine, rows, failures }: Omit<Board, 'methods'>,
  plots: readonly Plot[],
): string {
  const missed = rows.flatMap((row) => row.budgets ?? []).filter(({ held }) => !held).length
  return [
    `One run, ${inWords(machine)}; client, server and sandboxes share the cores. ` +
      `Failed operations: ${failures.length}. Budgets missed: ${missed}.`,
    '',
    shortTable(rows, SHOWN),
    '',
    ...plots.flatMap(({ file, alt }) => [`![${alt}](${RESULTS}/${file})`, '']),
    'The floor is the least that the machine needs without any of it: a bare `crun run` or `runc run`, a `posix_spawn` over a unix socket, `cp`. Everything that was',
    `measured is in [${RESULTS}/board.md](${RESULTS}/board.md), how in [bench/README.md](bench/README.md). To repeat it:`,
    '',
    '```sh',
    COMMAND,
    '```',
  ].join('\n')
}

/** The text with what is between the marks replaced. */
export function replaceSection(readme: string, section: string): string {
  const [from, to] = [readme.indexOf(MARKS[0]), readme.indexOf(MARKS[1])]
  if (from < 0 || to < from) throw new Error(`README.md has no ${MARKS.join(' … ')}`)
  return `${readme.slice(0, from + MARKS[0].length)}\n${section}\n${readme.slice(to)}`
}

function counted(lines: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>()
  for (const line of lines) counts.set(line, (counts.get(line) ?? 0) + 1)
  return counts
}

/** As the checks want a file of this repository to be. */
function writeJson(path: string, value: unknown): void {
  write(path, JSON.stringify(value))
  execFileSync(join(root, 'node_modules/.bin/biome'), ['format', '--write', path], {
    cwd: root,
    stdio: 'ignore',
  })
}

function write(path: string, content: string): void {
  writeFileSync(join(root, path), content)
}
