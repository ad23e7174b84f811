// A timeline with a row for each process, on a common axis in milliseconds.
import { linearScale } from './scale.ts'
import { COLORS, line, rectangle, short, svg, text } from './svg.ts'

export interface Span {
  fromMs: number
  toMs: number
  color?: string
}

export interface Row {
  name: string
  spans: readonly Span[]
  /** Single moments, each with a word beside the row. */
  marks?: readonly { atMs: number; name: string }[]
}

export interface Panel {
  name: string
  rows: readonly Row[]
}

const WIDTH = 900
const LEFT = 250
const RIGHT = 30
const TOP = 60
const ROW = 22
const HEAD = 30

export function drawTimeline(title: string, panels: readonly Panel[]): string {
  const ends = panels.flatMap(({ rows }) => rows.flatMap(({ spans }) => spans.map(({ toMs }) => toMs)))
  const scale = linearScale([0, ...ends], LEFT, WIDTH - RIGHT)
  const bottom = TOP + panels.reduce((sum, { rows }) => sum + HEAD + rows.length * ROW, 0)
  const parts = [text(16, 28, title, { size: 15, bold: true })]
  for (const tick of scale.ticks) {
    const x = scale(tick)
    parts.push(line(x, TOP, x, bottom, COLORS.grid))
    parts.push(text(x, bottom + 18, `${short(tick)} ms`, { color: COLORS.quiet, anchor: 'middle' }))
  }
  let y = TOP
  for (const { name, rows } of panels) {
    parts.push(text(16, y + 20, name, { bold: true }))
    y += HEAD
    for (const row of rows) {
      parts.push(...drawRow(row, y, scale))
      y += ROW
    }
  }
  return svg(WIDTH, bottom + 34, title, parts)
}

function drawRow({ name, spans, marks = [] }: Row, y: number, scale: (value: number) => number): string[] {
  const parts = [text(LEFT - 10, y + 14, name, { anchor: 'end' })]
  for (const { fromMs, toMs, color = COLORS.islet } of spans) {
    const x = scale(fromMs)
    parts.push(rectangle(x, y + 4, Math.max(scale(toMs) - x, 1.5), ROW - 8, color))
  }
  for (const { atMs, name: word } of marks) {
    parts.push(line(scale(atMs), y + 2, scale(atMs), y + ROW - 2, COLORS.text))
    parts.push(text(scale(atMs) + 3, y + 14, word, { size: 10 }))
  }
  return parts
}
