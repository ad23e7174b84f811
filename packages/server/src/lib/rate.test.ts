import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Rate } from './rate.ts'

test('a burst passes at once, later callers wait, and all pass in the end', async () => {
  const rate = new Rate(16_000, 8000)
  rate.take(7000)
  assert.equal(rate.wait(), undefined)
  const waits = [2000, 1000].map((count) => {
    rate.take(count)
    return rate.wait()
  })
  for (const wait of waits) assert.ok(wait instanceof Promise)
  await Promise.all(waits)
})

test('what is tried when nothing is left is refused, and costs nothing', () => {
  const rate = new Rate(0.001, 2)
  assert.deepEqual([rate.tryNow(), rate.tryNow(), rate.tryNow()], [true, true, false])
})
