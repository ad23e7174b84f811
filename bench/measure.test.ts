import assert from 'node:assert/strict'
import { mock, test } from 'node:test'
import { curveOf, failures, fit, sample, sampleAtOnce, summarise, Tally } from './measure.ts'

const upTo = (n: number) => Array.from({ length: n }, (_, index) => index + 1)

test('percentiles are of the sorted samples, whatever their order', () => {
  const { n, p50, p95, p99, min, max } = summarise(upTo(100).reverse())
  assert.deepEqual({ n, p50, p95, p99, min, max }, { n: 100, p50: 50, p95: 95, p99: 99, min: 1, max: 100 })
})

test('one sample is all its percentiles', () => {
  assert.deepEqual(summarise([7]), { n: 1, failed: 0, p50: 7, p95: 7, p99: 7, min: 7, max: 7 })
})

test('no samples give zeros and keep the count of what failed', () => {
  assert.deepEqual(summarise([], 3), { n: 0, failed: 3, p50: 0, p95: 0, p99: 0, min: 0, max: 0 })
})

test('a curve goes from the least to the greatest', () => {
  const curve = curveOf([30, 10, 20])
  assert.equal(curve.length, 101)
  assert.deepEqual([curve[0], curve[50], curve[100]], [10, 20, 30])
})

test('an operation that fails is counted, said, and ends nothing', async () => {
  const said = mock.method(console, 'error', () => {})
  try {
    const tally = await sample('odd ones', 10, 0, async (index) => {
      if (index % 2 === 1) throw new Error(`number ${index}`)
    })
    const { n, failed } = tally.summary()
    assert.deepEqual({ n, failed }, { n: 5, failed: 5 })
    assert.equal(tally.successOf(10), 50)
    assert.match(said.mock.calls[0]!.arguments.join(' '), /odd ones: Error: number 1/)
    assert.ok(failures.includes('odd ones: number 9'))
  } finally {
    said.mock.restore()
  }
})

test('warm-up runs have no time', async () => {
  const seen: number[] = []
  const tally = await sample('warm', 3, 2, async (index) => void seen.push(index))
  assert.deepEqual(seen, [-1, -2, 0, 1, 2])
  assert.equal(tally.times.length, 3)
})

test('callers at once make exactly n runs', async () => {
  let [running, most] = [0, 0]
  const tally = await sampleAtOnce('at once', 20, 4, async () => {
    most = Math.max(most, ++running)
    await new Promise(setImmediate)
    running--
  })
  assert.equal(tally.times.length, 20)
  assert.equal(most, 4)
})

test('a tally hands on what the operation answers with', async () => {
  const tally = new Tally('answers')
  assert.equal(await tally.time(async () => 42), 42)
  assert.equal(tally.times.length, 1)
})

test('the line through points on a line is that line, without an error', () => {
  const { slope, intercept, error } = fit([
    [0, 5],
    [10, 25],
    [20, 45],
  ])
  assert.deepEqual([slope, intercept, error], [2, 5, 0])
})

test('points beside the line give the slope an error', () => {
  const { slope, error } = fit([
    [0, 1],
    [1, 1],
    [2, 4],
    [3, 4],
  ])
  assert.equal(slope, 1.2)
  // By hand: squares left over 1.8, over 2 degrees of freedom, over a spread of 5.
  assert.ok(Math.abs(error - Math.sqrt(1.8 / 2 / 5)) < 1e-9)
})
