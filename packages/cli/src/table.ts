import { stripVTControlCharacters } from 'node:util'
import { type Colour, paint, print } from './output.ts'

/** The colour is added after the text was made harmless. */
export type Column<Row> = [title: string, cell: (row: Row) => string, colour?: (row: Row) => Colour]

/** Columns as wide as what is in them; the last one is not padded. */
export function printTable<Row>(rows: readonly Row[], columns: readonly Column<Row>[]): void {
  const [titles = '', ...lines] = formatTable(rows, columns)
  print(paint('dim', titles))
  for (const line of lines) print(line)
}

export function formatTable<Row>(rows: readonly Row[], columns: readonly Column<Row>[]): string[] {
  const cells = rows.map((row) =>
    columns.map(([, cell, colour]) => {
      const text = clean(cell(row))
      return colour ? paint(colour(row), text) : text
    }),
  )
  const lines = [columns.map(([title]) => title), ...cells]
  const widths = columns.map((_, at) => Math.max(...lines.map((line) => width(line[at]!))))
  return lines.map((line) =>
    line.map((text, at) => (at === line.length - 1 ? text : pad(text, widths[at]!))).join('  '),
  )
}

/** Names and commands come from sandboxes and from others: they must not steer the terminal. */
export function clean(text: string): string {
  return Array.from(text, (character) => (isControl(character) ? visible(character) : character)).join('')
}

function isControl(character: string): boolean {
  const code = character.codePointAt(0)!
  return code < 0x20 || (code >= 0x7f && code < 0xa0)
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
