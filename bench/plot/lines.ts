// Lines over a common axis, each named in the legend above.
import { linearScale, logScale, type Scale } from './scale.ts'
import { COLORS, dot, line, PALETTE, path, rectangle, short, svg, text } from './svg.ts'

export interface Axis {
  label: string
  log?: boolean
  /** The positions of the ticks. Default: chosen by the scale. */
  ticks?: readonly number[]
}

export interface Series {
  name: string
  points: readonly (readonly [number, number])[]
  dots?: boolean
  /** Only its dots. */
  unconnected?: boolean
  dashed?: boolean
  color?: string
}

export interface Lines {
  title: string
  x: Axis
  y: Axis
  series: readonly Series[]
}

const WIDTH = 820
const HEIGHT = 400
const LEFT = 70
const RIGHT = 24
const BOTTOM = 56
const LEGEND_ROW = 20

export function drawLines({ title, x, y, series }: Lines): string {
  const legend = legendOf(series)
  const top = 48 + legend.rows * LEGEND_ROW
  const height = HEIGHT + legend.rows * LEGEND_ROW
  const points = series.flatMap((one) => one.points)
  const toX = scaleOf(
    x,
    points.map((point) => point[0]),
    LEFT,
    WIDTH - RIGHT,
  )
  const toY = scaleOf(
    y,
    points.map((point) => point[1]),
    height - BOTTOM,
    top,
  )
  const parts = [text(16, 26, title, { size: 15, bold: true }), ...legend.parts]
  for (const tick of x.ticks ?? toX.ticks) {
    parts.push(line(toX(tick), top, toX(tick), height - BOTTOM, COLORS.grid))
    parts.push(text(toX(tick), height - BOTTOM + 18, short(tick), { color: COLORS.quiet, anchor: 'middle' }))
  }
  for (const tick of toY.ticks) {
    parts.push(line(LEFT, toY(tick), WIDTH - RIGHT, toY(tick), COLORS.grid))
    parts.push(text(LEFT - 8, toY(tick) + 4, short(tick), { color: COLORS.quiet, anchor: 'end' }))
  }
  const quiet = { color: COLORS.quiet, anchor: 'middle' } as const
  parts.push(text((LEFT + WIDTH - RIGHT) / 2, height - 14, x.label, quiet))
  parts.push(text(22, (top + height - BOTTOM) / 2, y.label, { ...quiet, upright: true }))
  for (const [index, one] of series.entries()) {
    const color = colorOf(one, index)
    const placed = one.points.map(([a, b]) => [toX(a), toY(b)] as const)
    if (placed.length > 1 && !one.unconnected) parts.push(path(placed, color, one.dashed))
    if (one.dots) parts.push(...placed.map(([a, b]) => dot(a, b, color)))
  }
  return svg(WIDTH, height, title, parts)
}

function scaleOf({ log }: Axis, values: number[], from: number, to: number): Scale {
  return log ? logScale(values, from, to) : linearScale(values, from, to)
}

function colorOf(series: Series, index: number): string {
  return series.color ?? PALETTE[index % PALETTE.length]!
}

function legendOf(series: readonly Series[]): { parts: string[]; rows: number } {
  const parts: string[] = []
  let [left, row] = [16, 0]
  for (const [index, one] of series.entries()) {
    const width = 40 + one.name.length * 6.6
    if (left + width > WIDTH - 8) [left, row] = [16, row + 1]
    const y = 46 + row * LEGEND_ROW
    parts.push(rectangle(left, y - 5, 16, 3, colorOf(one, index)))
    parts.push(text(left + 22, y, one.name, { color: COLORS.quiet }))
    left += width
  }
  return { parts, rows: row + 1 }
}
