// The board as Markdown tables: everything, the rows of docs/performance.md, and the few of the README.
import { middle, type Row } from './figure.ts'
import type { Samples } from './measure.ts'
import { short } from './plot/svg.ts'

const FULL = [
  'figure',
  'unit',
  'n',
  'failed',
  'p50',
  'p95',
  'p99',
  'Docker',
  'faster',
  'floor',
  '× floor',
  'budget',
  'held',
  'note',
]

/** Every row, with everything that was measured. */
export function fullTable(rows: readonly Row[]): string {
  return table(
    FULL,
    rows.map((row) => [
      row.figure,
      row.unit,
      ...numbers(row.islet),
      ...beside(row),
      ...verdict(row),
      row.note ?? '',
    ]),
  )
}

/** Without the floor and the budgets. */
export function briefTable(rows: readonly Row[]): string {
  return table(
    ['figure', 'p50', 'p99', 'Docker', 'times better'],
    rows.map((row) => {
      const [, , p50, , p99] = numbers(row.islet)
      const [docker, faster] = beside(row)
      return [row.figure, ...[p50!, p99!, docker!].map((cell) => withUnit(cell, row)), faster!]
    }),
  )
}

/** The rows that have a budget, and those named. */
export function shortTable(rows: readonly Row[], ids: readonly string[]): string {
  const shown = rows.filter((row) => row.budgets || ids.includes(row.id))
  return table(
    ['figure', 'n', 'p50', 'p99', 'Docker', 'faster', 'floor', 'budget', 'held'],
    shown.map((row) => {
      const [n, , p50, , p99] = numbers(row.islet)
      const [docker, faster, floor] = beside(row)
      const [middle, worst, other, least] = [p50!, p99!, docker!, floor!].map((cell) => withUnit(cell, row))
      return [row.figure, n!, middle!, worst!, other!, faster!, least!, ...verdict(row)]
    }),
  )
}

function withUnit(cell: string, { unit }: Row): string {
  return cell === '' ? '' : `${cell} ${unit}`
}

function numbers(value: Samples | number): string[] {
  if (typeof value === 'number') return ['', '', short(value), '', '']
  return [value.n, value.failed, ...[value.p50, value.p95, value.p99].map(short)].map(String)
}

/** Docker's p50 and how many times faster Islet is; the floor's p50 and how many times slower Islet is. */
function beside({ islet, docker, floor, unit }: Row): string[] {
  // A higher rate is better.
  const more = unit.includes('/s') || unit.includes('per second')
  const times = (ours: number, other: number) => (more ? other / ours : ours / other)
  const cells: string[] = []
  for (const [other, invert] of [
    [docker, true],
    [floor, false],
  ] as const) {
    if (other === undefined || !middle(islet) || !middle(other)) {
      cells.push(other === undefined ? '' : short(middle(other)), '')
      continue
    }
    const ratio = times(middle(islet), middle(other))
    cells.push(short(middle(other)), `${short(invert ? 1 / ratio : ratio)}×`)
  }
  return cells
}

function verdict({ budgets = [] }: Row): string[] {
  const missed = budgets.filter(({ held }) => !held).map(({ budget }) => budget)
  const held = missed.length > 0 ? `**missed**: ${missed.join(', ')}` : 'yes'
  return [budgets.map(({ budget }) => budget).join(', '), budgets.length === 0 ? '' : held]
}

export function table(head: readonly string[], rows: readonly string[][]): string {
  const widths = head.map((title, column) =>
    Math.max(title.length, ...rows.map((row) => row[column]!.length)),
  )
  const line = (row: readonly string[]) =>
    `| ${row.map((cell, column) => cell.padEnd(widths[column]!)).join(' | ')} |`
  return [line(head), line(widths.map((width) => '-'.repeat(width))), ...rows.map(line)].join('\n')
}
