import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type BUDGETS, judged, unmeasured } from './budgets.ts'
import type { Row } from './figure.ts'
import type { Samples } from './measure.ts'

const samples = (over: Partial<Samples> = {}): Samples => ({
  n: 10,
  failed: 0,
  p50: 1,
  p95: 2,
  p99: 3,
  min: 1,
  max: 4,
  ...over,
})
const row = (over: Partial<Row> = {}): Row => ({
  id: 'x',
  figure: 'x',
  unit: 'ms',
  islet: samples(),
  ...over,
})
const verdicts = (one: Row, budgets: typeof BUDGETS) => judged([one], budgets)[0]!.budgets

test('a budget is held up to its limit and missed beyond it', () => {
  const x = [{ of: 'p50', atMost: 5 } as const]
  assert.deepEqual(verdicts(row({ islet: samples({ p50: 5 }) }), { x }), [{ budget: 'p50 ≤ 5', held: true }])
  assert.deepEqual(verdicts(row({ islet: samples({ p50: 5.01 }) }), { x }), [
    { budget: 'p50 ≤ 5', held: false },
  ])
})

test('of a rate the budget is the least', () => {
  const x = [{ of: 'p50', atLeast: 500 } as const]
  assert.deepEqual(verdicts(row({ islet: samples({ p50: 499 }) }), { x }), [
    { budget: 'p50 ≥ 500', held: false },
  ])
})

test('a ratio to Docker is judged only when Docker was measured', () => {
  const x = [{ of: 'docker', atMost: 1 / 5 } as const]
  assert.equal(verdicts(row(), { x }), undefined)
  assert.deepEqual(verdicts(row({ docker: samples({ p50: 4.9 }) }), { x }), [
    { budget: '≤ 1/5 of Docker', held: false },
  ])
  assert.equal(verdicts(row({ docker: samples({ p50: 5 }) }), { x })![0]!.held, true)
})

test('a figure of which every operation failed holds no time', () => {
  const x = [{ of: 'p50', atMost: 5 } as const, { of: 'failed', atMost: 0 } as const]
  assert.deepEqual(verdicts(row({ islet: samples({ n: 0, failed: 10, p50: 0 }) }), { x }), [
    { budget: 'p50 ≤ 5', held: false },
    { budget: 'none fails', held: false },
  ])
})

test('a figure that is one number has a budget of its own kind', () => {
  const x = [{ of: 'value', atMost: 3 } as const]
  assert.deepEqual(verdicts(row({ islet: 2.5 }), { x }), [{ budget: '≤ 3', held: true }])
})

test('a budget without a row is not forgotten', () => {
  const budgets = { x: [{ of: 'value', atMost: 3 } as const], y: [{ of: 'value', atMost: 3 } as const] }
  assert.deepEqual(unmeasured([row()], budgets), ['y'])
})
