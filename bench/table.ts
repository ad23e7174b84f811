import type { Row } from './figure.ts'
import type { Samples } from './measure.ts'

/** The board as Markdown. */
export function printTable(rows: readonly Row[]): string {
  const cells = rows.map((row) => [
    row.figure,
    row.unit,
    ...numbers(row.islet),
    ...comparison(row),
    row.note ?? '',
  ])
  const head = ['figure', 'unit', 'n', 'p50', 'p95', 'p99', 'Docker p50', 'ratio', 'note']
  const widths = head.map((title, column) =>
    Math.max(title.length, ...cells.map((row) => row[column]!.length)),
  )
  const line = (row: string[]) => `| ${row.map((cell, column) => cell.padEnd(widths[column]!)).join(' | ')} |`
  return [line(head), line(widths.map((width) => '-'.repeat(width))), ...cells.map(line)].join('\n')
}

function numbers(value: Samples | number): string[] {
  if (typeof value === 'number') return ['', String(value), '', '']
  return [String(value.n), String(value.p50), String(value.p95), String(value.p99)]
}

function comparison({ islet, docker }: Row): string[] {
  if (docker === undefined) return ['', '']
  const ours = typeof islet === 'number' ? islet : islet.p50
  const theirs = typeof docker === 'number' ? docker : docker.p50
  return [String(theirs), `1/${(theirs / ours).toFixed(1)}`]
}
