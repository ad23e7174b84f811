import { stripVTControlCharacters } from 'node:util'
import { paint, print } from './output.ts'

export type Column<Row> = [title: string, cell: (row: Row) => string]

/** Columns as wide as what is in them; the last one is not padded. */
export function printTable<Row>(rows: readonly Row[], columns: readonly Column<Row>[]): void {
  const [titles = '', ...lines] = formatTable(rows, columns)
  print(paint('dim', titles))
  for (const line of lines) print(line)
}

export function formatTable<Row>(rows: readonly Row[], columns: readonly Column<Row>[]): string[] {
  const cells = [
    columns.map(([title]) => title),
    ...rows.map((row) => columns.map(([, cell]) => clean(cell(row)))),
  ]
  const widths = columns.map((_, at) => Math.max(...cells.map((line) => width(line[at]!))))
  return cells.map((line) =>
    line.map((text, at) => (at === line.length - 1 ? text : pad(text, widths[at]!))).join('  '),
  )
}

/** Names and commands come from sandboxes and from others: they must not steer the terminal. */
export function clean(text: string): string {
  return Array.from(text, (character) => (isControl(character) ? visible(character) : character)).join('')
}

function isControl(character: string): boolean {
  const code = character.codePointAt(0)!
  return (code < 0x20 && code !== 0x1b) || (code >= 0x7f && code < 0xa0)
}

function visible(character: string): string {
  return character === '\n' ? '↵' : '·'
}

function width(text: string): number {
  return [...stripVTControlCharacters(text)].length
}

function pad(text: string, to: number): string {
  return text + ' '.repeat(Math.max(0, to - width(text)))
}
