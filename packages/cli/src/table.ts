// Lists and fields on stdout. Text is cleaned before colours are added.
import { stripVTControlCharacters } from 'node:util'
import type { JsonFlag } from './command.ts'
import { clean } from './format.ts'
import { type Colour, paint, print, printJson, say } from './output.ts'

export type Column<Row> = [title: string, cell: (row: Row) => string, colour?: (row: Row) => Colour]

export interface ListFlags extends JsonFlag {
  quiet?: true
}

interface ListOptions<Row> {
  columns: readonly Column<Row>[]
  /** Said on stderr when the list is empty. */
  none: string
  /** The line that --quiet prints. */
  key?: (row: Row) => string
}

/** JSON with --json, keys with --quiet, else a table. */
export function printList<Row>(rows: readonly Row[], flags: ListFlags, options: ListOptions<Row>): void {
  const { columns, none, key } = options
  if (flags.json) printJson(rows)
  else if (flags.quiet && key) for (const line of new Set(rows.map(key))) print(line)
  else if (rows.length === 0) say(none)
  else printTable(rows, columns)
}

export function printTable<Row>(rows: readonly Row[], columns: readonly Column<Row>[]): void {
  const [titles = '', ...lines] = formatTable(rows, columns)
  print(paint('dim', titles))
  for (const line of lines) print(line)
}

/** Each column is as wide as its widest cell; the last one is not padded. */
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

/** One line for each field that has a value. */
export function printFields(fields: readonly [title: string, value: string | null | undefined][]): void {
  const longest = Math.max(...fields.map(([title]) => title.length))
  for (const [title, value] of fields)
    if (value) print(`${paint('dim', title.padEnd(longest))} ${clean(value)}`)
}

function width(text: string): number {
  return [...stripVTControlCharacters(text)].length
}

function pad(text: string, to: number): string {
  return text + ' '.repeat(Math.max(0, to - width(text)))
}
