import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Row } from '../figure.ts'
import { curveOf, summarise } from '../measure.ts'
import { drawBars } from './bars.ts'
import { drawLines } from './lines.ts'
import { plotsOf } from './plots.ts'
import { linearScale, logScale } from './scale.ts'
import { short, text } from './svg.ts'

test('on a logarithmic axis equal ratios are equal distances', () => {
  const scale = logScale([1, 1000], 0, 300)
  assert.deepEqual([1, 10, 100, 1000].map(scale).map(Math.round), [0, 100, 200, 300])
  assert.deepEqual(scale.ticks, [1, 10, 100, 1000])
})

test('a logarithmic axis holds every value and its ends are round', () => {
  const scale = logScale([0.35, 43], 0, 100)
  assert.equal(scale.ticks[0], 0.2)
  assert.equal(scale.ticks.at(-1), 50)
  for (const value of [0.35, 43]) assert.ok(scale(value) >= 0 && scale(value) <= 100)
})

test('a linear axis begins at zero and ends at a round number above all values', () => {
  const scale = linearScale([3, 87], 400, 0)
  assert.deepEqual(scale.ticks, [0, 20, 40, 60, 80, 100])
  assert.deepEqual([scale(0), scale(100)], [400, 0])
})

test('a bar is as long as its value, and one that was not measured is left out', () => {
  const drawing = drawBars({
    title: 'A <title>',
    unit: 'ms',
    series: [
      { name: 'one', color: '#111111' },
      { name: 'two', color: '#222222' },
    ],
    groups: [
      { name: 'first', values: [10, undefined] },
      { name: 'second', values: [1000, 100] },
    ],
  })
  const widths = [...drawing.matchAll(/width="([\d.]+)" height="12" rx="2" fill="(#\d+)"/g)].map((match) =>
    Number(match[1]),
  )
  assert.equal(widths.length, 3)
  assert.ok(widths[0]! < widths[2]! && widths[2]! < widths[1]!)
  assert.match(drawing, /A &lt;title&gt;/)
  assertWellFormed(drawing)
})

test('every series has its line and its name, and no point is outside', () => {
  const drawing = drawLines({
    title: 'Lines',
    x: { label: 'count', log: true, ticks: [10, 500] },
    y: { label: 'ms', log: true },
    series: [
      {
        name: 'up',
        points: [
          [10, 1],
          [500, 90],
        ],
        dots: true,
      },
      {
        name: 'flat',
        points: [
          [10, 2],
          [500, 2],
        ],
      },
    ],
  })
  assert.equal(drawing.match(/<path /g)?.length, 2)
  assert.equal(drawing.match(/<circle /g)?.length, 2)
  for (const name of ['up', 'flat']) assert.match(drawing, new RegExp(`>${name}</text>`))
  for (const [, x, y] of drawing.matchAll(/[ML]([\d.-]+) ([\d.-]+)/g)) {
    assert.ok(Number(x) >= 0 && Number(x) <= 820)
    assert.ok(Number(y) >= 0 && Number(y) <= 460)
  }
  assertWellFormed(drawing)
})

test('a board gives the plots whose rows it has', () => {
  const ms = (id: string, value: number): Row => ({ id, figure: id, unit: 'ms', islet: summarise([value]) })
  const rows: Row[] = [
    ms('exec', 2),
    { ...ms('burst-warm-each', 300), curve: curveOf([100, 300]) },
    ...[10, 500].flatMap((count) =>
      ['first', 'exec', 'list', 'get'].map((name) => ms(`scale-${count}-${name}`, 3)),
    ),
    {
      id: 'memory-all-in',
      figure: 'memory',
      unit: 'MiB',
      islet: 2,
      points: [
        [0, 0],
        [100, 200],
      ],
    },
  ]
  const plots = plotsOf(rows)
  assert.deepEqual(
    plots.map(({ file }) => file),
    ['speed.svg', 'burst.svg', 'scale.svg', 'memory.svg'],
  )
  for (const { drawing } of plots) assertWellFormed(drawing)
  assert.deepEqual(plotsOf([]), [])
})

test('numbers are short', () => {
  assert.deepEqual([0, 0.123, 1.234, 12.34, 123.4, 12_345].map(short), [
    '0',
    '0.12',
    '1.23',
    '12.3',
    '123',
    '12,345',
  ])
})

test('text cannot break out of the drawing', () => {
  assert.match(text(0, 0, '<script>&'), />&lt;script&gt;&amp;</)
})

/** Every element is closed, no number went wrong. */
function assertWellFormed(drawing: string): void {
  assert.doesNotMatch(drawing, /NaN|Infinity|undefined/)
  const open: string[] = []
  for (const [, closing, name, , own] of drawing.matchAll(
    /<(\/?)(\w+)((?:[^>"']|"[^"]*"|'[^']*')*?)(\/?)>/g,
  )) {
    if (closing) assert.equal(open.pop(), name)
    else if (!own) open.push(name!)
  }
  assert.deepEqual(open, [])
}
