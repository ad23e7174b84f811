import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Demand } from './demand.ts'

test('demand is the peak within a short time: it rises at once and decays slowly', () => {
  let now = 0
  const demand = new Demand(() => now)
  assert.equal(demand.recent(), 0)
  for (let i = 0; i < 100; i++) demand.count()
  assert.equal(demand.recent(), 100)
  const seen = Array.from({ length: 60 }, () => {
    now += 10_000
    return demand.recent()
  })
  assert.ok(seen[0]! > 80 && seen[0]! <= 100)
  assert.deepEqual(
    seen,
    seen.toSorted((a, b) => b - a),
  )
  assert.equal(seen.at(-1), 0)
})

test('steady demand does not add up', () => {
  let now = 0
  const demand = new Demand(() => now)
  for (let i = 0; i < 1000; i++) {
    demand.count()
    now += 100
  }
  assert.ok(demand.recent() <= 20, `${demand.recent()}`)
})
