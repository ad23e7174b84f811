// The plots of a board, each a file: its name and its drawing. A plot whose rows are not in the run is left out.
import { middle, type Row } from '../figure.ts'
import { drawBars } from './bars.ts'
import { drawLines, type Series } from './lines.ts'
import { COLORS } from './svg.ts'

export interface Plot {
  file: string
  /** The alternative text of the image. */
  alt: string
  drawing: string
}

export function plotsOf(rows: readonly Row[]): Plot[] {
  const find = (id: string) => rows.find((row) => row.id === id)
  return [speed(find), burst(find), scale(rows), memory(rows)].filter((plot) => plot !== undefined)
}

type Find = (id: string) => Row | undefined

const SPEED = {
  'create-cold-first': 'create cold, first result',
  'create-warm-first': 'create warm, first result',
  'interactive-sequential': 'create warm, node -v',
  exec: 'exec',
  'first-byte': 'first byte of output',
  'fork-warm-first': 'fork of 20,000 files',
}

function speed(find: Find): Plot | undefined {
  const shown = Object.entries(SPEED).flatMap(([id, name]) => {
    const row = find(id)
    return row ? [{ name, values: [row.islet, row.docker, row.floor].map(p50) }] : []
  })
  if (shown.length === 0) return undefined
  const drawing = drawBars({
    title: 'Islet, Docker and the floor, p50',
    unit: 'ms',
    series: [
      { name: 'Islet', color: COLORS.islet },
      { name: 'Docker', color: COLORS.docker },
      { name: 'floor: a bare container, posix_spawn or cp -a', color: COLORS.floor },
    ],
    groups: shown,
  })
  return { file: 'speed.svg', alt: 'create, exec and fork of Islet beside Docker and the floor', drawing }
}

const BURST = {
  'burst-warm-each': '100 creates at once, warm',
  'burst-cold-each': '100 creates at once, cold',
  'interactive-sequential': 'node -v, sequential',
  'interactive-staggered': 'node -v, every 200 ms',
  'interactive-burst': 'node -v, 100 at once',
}

function burst(find: Find): Plot | undefined {
  const series = Object.entries(BURST).flatMap(([id, name]): Series[] => {
    const curve = find(id)?.curve
    return curve ? [{ name, points: curve.map((ms, percent) => [ms, percent] as const) }] : []
  })
  if (series.length === 0) return undefined
  const drawing = drawLines({
    title: 'How many had their first result after how long',
    x: { label: 'ms since the call of create, logarithmic', log: true },
    y: { label: 'percent' },
    series,
  })
  return { file: 'burst.svg', alt: 'share of creates that had their first result, over time', drawing }
}

const SCALE = {
  first: 'create warm, first result',
  exec: 'exec',
  list: 'list, a page of 10',
  get: 'get',
}

function scale(rows: readonly Row[]): Plot | undefined {
  const counts = new Set<number>()
  const series = Object.entries(SCALE).map(([name, words]): Series => {
    const points = rows.flatMap((row): [number, number][] => {
      const match = new RegExp(`^scale-(\\d+)-${name}$`).exec(row.id)
      if (!match || !p50(row.islet)) return []
      counts.add(Number(match[1]))
      return [[Number(match[1]), middle(row.islet)]]
    })
    return { name: words, points, dots: true }
  })
  if (counts.size < 2) return undefined
  const drawing = drawLines({
    title: 'The cost of one call as the machine fills, p50',
    x: { label: 'idle sandboxes alive, logarithmic', log: true, ticks: [...counts] },
    y: { label: 'ms, logarithmic', log: true },
    series,
  })
  return { file: 'scale.svg', alt: 'create, exec, list and get with 10 to 500 sandboxes alive', drawing }
}

function memory(rows: readonly Row[]): Plot | undefined {
  const row = rows.find(({ id }) => id === 'memory-all-in')
  if (!row?.points || typeof row.islet !== 'number') return undefined
  const others = rows.flatMap(({ id, islet }): [number, number][] => {
    const count = Number(/^scale-(\d+)-memory$/.exec(id)?.[1])
    return count > 0 ? [[count, middle(islet) * count]] : []
  })
  const most = Math.max(...[...row.points, ...others].map(([count]) => count))
  const drawing = drawLines({
    title: 'Memory of the whole machine with idle sandboxes',
    x: { label: 'idle sandboxes alive' },
    y: { label: 'MiB more than with none' },
    series: [
      { name: 'measured', points: row.points, dots: true, unconnected: true },
      { name: 'measured in the run of scale', points: others, dots: true, unconnected: true },
      {
        name: `${row.islet} MiB each`,
        points: [
          [0, 0],
          [most, most * row.islet],
        ],
        dashed: true,
      },
      {
        name: 'budget: 3 MiB each',
        points: [
          [0, 0],
          [most, most * 3],
        ],
        dashed: true,
        color: COLORS.docker,
      },
    ],
  })
  return { file: 'memory.svg', alt: 'memory the machine uses with 0 to 300 idle sandboxes', drawing }
}

function p50(value: Row['islet'] | undefined): number | undefined {
  return value === undefined ? undefined : middle(value) || undefined
}
