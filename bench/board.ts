// Writes the results of a run: results/latest.json and results/board.md with everything, the plots, six rows in the README, the rest in docs/performance.md.
import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from '../tests/support/server.ts'
import type { Row } from './figure.ts'
import { inWords, type Machine } from './machine.ts'
import { type Plot, plotsOf } from './plot/plots.ts'
import type { Ratios } from './ratios.ts'
import { briefTable, fullTable, shortTable } from './table.ts'

export interface Board {
  machine: Machine
  /** How each figure is taken. */
  methods: Record<string, string>
  rows: Row[]
  /** One message per failed operation, also for Docker and the floor. */
  failures: string[]
}

const RESULTS = 'bench/results'
export const GUARD_FILE = `${RESULTS}/guard.json`
const COMMAND = 'npm ci && npm run bench -- --docker'
const MARKS = ['<!-- board -->', '<!-- /board -->'] as const

/** The rows of the README. */
const IN_README = [
  'create-cold-first',
  'create-warm-first',
  'burst-warm-all',
  'exec',
  'fork-warm-first',
  'memory-all-in',
]
/** The rows of docs/performance.md, besides those with a budget. */
const IN_PAGE = [
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
const SECTIONS = { 'README.md': readmeSection, 'docs/performance.md': pageSection }

export function writeBoard(board: Board): void {
  mkdirSync(join(root, RESULTS), { recursive: true })
  writeJson(`${RESULTS}/latest.json`, board)
  write(`${RESULTS}/board.md`, boardPage(board))
  for (const { file, drawing } of plotsOf(board.rows)) write(`${RESULTS}/${file}`, drawing)
  for (const [path, text] of Object.entries(pagesWith(board))) write(path, text)
}

/** The pages that show figures, by path, with their sections updated from this board. */
export function pagesWith(board: Board): Record<string, string> {
  const plots = plotsOf(board.rows)
  const pages = Object.entries(SECTIONS).map(([path, section]) => {
    const page = readFileSync(join(root, path), 'utf8')
    return [path, replaceSection(page, section(board, plots), path)]
  })
  return Object.fromEntries(pages)
}

/** Writes the ratios that `bench/guard.ts` compares with. */
export function writeGuard(machine: Machine, ratios: Ratios): void {
  writeJson(GUARD_FILE, { machine, ratios })
}

/** The page that a run prints. */
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

type Shown = Omit<Board, 'methods'>

/** Six rows and one plot. */
export function readmeSection({ machine, rows }: Shown, plots: readonly Plot[]): string {
  const [first] = plots
  return [
    briefTable(IN_README.flatMap((id) => rows.find((row) => row.id === id) ?? [])),
    '',
    ...(first ? [image(first, RESULTS), ''] : []),
    `One run on ${machine.cores} cores; client, server and sandboxes share them. [docs/performance.md](docs/performance.md) has all figures, the`,
    'machine, and the command that repeats the run.',
  ].join('\n')
}

/** The machine, the main rows, all plots except the README's, and how to repeat the run. */
export function pageSection({ machine, rows, failures }: Shown, plots: readonly Plot[]): string {
  const missed = rows.flatMap((row) => row.budgets ?? []).filter(({ held }) => !held).length
  return [
    `One run, ${inWords(machine)}; client, server and sandboxes share the cores. ` +
      `Failed operations: ${failures.length}. Budgets missed: ${missed}.`,
    '',
    shortTable(rows, IN_PAGE),
    '',
    ...plots.slice(1).flatMap((plot) => [image(plot, `../${RESULTS}`), '']),
    'To repeat the run:',
    '',
    '```sh',
    COMMAND,
    '```',
  ].join('\n')
}

/** Replaces the text between the marks. */
export function replaceSection(page: string, section: string, path: string): string {
  const [from, to] = [page.indexOf(MARKS[0]), page.indexOf(MARKS[1])]
  if (from < 0 || to < from) throw new Error(`${path} has no ${MARKS.join(' … ')}`)
  return `${page.slice(0, from + MARKS[0].length)}\n${section}\n${page.slice(to)}`
}

function image({ file, alt }: Plot, directory: string): string {
  return `![${alt}](${directory}/${file})`
}

function counted(lines: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>()
  for (const line of lines) counts.set(line, (counts.get(line) ?? 0) + 1)
  return counts
}

/** Formatted by biome, because `npm run check` checks it. */
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
