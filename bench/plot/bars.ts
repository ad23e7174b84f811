// Bars side by side on a logarithmic axis: shorter is better.
import { logScale } from './scale.ts'
import { COLORS, line, rectangle, short, svg, text } from './svg.ts'

export interface Bars {
  title: string
  unit: string
  series: { name: string; color: string }[]
  /** Values in the order of the series; undefined leaves a bar out. */
  groups: { name: string; values: (number | undefined)[] }[]
}

const WIDTH = 820
const LEFT = 220
const RIGHT = 70
const TOP = 64
const BAR = 15
const GAP = 16

export function drawBars({ title, unit, series, groups }: Bars): string {
  const heights = groups.map(({ values }) => values.filter(isNumber).length * BAR + GAP)
  const bottom = TOP + heights.reduce((sum, height) => sum + height, 0)
  const scale = logScale(
    groups.flatMap(({ values }) => values.filter(isNumber)),
    LEFT,
    WIDTH - RIGHT,
  )
  const parts = [text(16, 26, title, { size: 15, bold: true })]
  let legend = 16
  for (const { name, color } of series) {
    parts.push(rectangle(legend, 38, 11, 11, color), text(legend + 16, 48, name, { color: COLORS.quiet }))
    legend += 34 + name.length * 6.6
  }
  for (const tick of scale.ticks) {
    const x = scale(tick)
    parts.push(line(x, TOP, x, bottom, COLORS.grid))
    parts.push(text(x, bottom + 18, short(tick), { color: COLORS.quiet, anchor: 'middle' }))
  }
  parts.push(
    text((LEFT + WIDTH - RIGHT) / 2, bottom + 38, `${unit}, logarithmic`, {
      color: COLORS.quiet,
      anchor: 'middle',
    }),
  )
  let y = TOP + GAP / 2
  for (const { name, values } of groups) {
    const shown = values.filter(isNumber).length
    parts.push(text(LEFT - 10, y + (shown * BAR) / 2 + 4, name, { anchor: 'end' }))
    for (const [index, value] of values.entries()) {
      if (!isNumber(value)) continue
      const end = Math.max(scale(value), LEFT + 2)
      parts.push(rectangle(LEFT, y, end - LEFT, BAR - 3, series[index]!.color))
      parts.push(text(end + 6, y + BAR - 5, short(value), { size: 11, color: COLORS.quiet }))
      y += BAR
    }
    y += GAP
  }
  return svg(WIDTH, bottom + 52, title, parts)
}

function isNumber(value: number | undefined): value is number {
  return value !== undefined && value > 0
}
