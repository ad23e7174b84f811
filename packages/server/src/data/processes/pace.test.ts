import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Pace } from './pace.ts'

const MIB = 1024 * 1024

test('a burst goes through at once, what comes after it waits, and everybody gets on in the end', async () => {
  const pace = new Pace()
  assert.equal(pace.take(7 * MIB), undefined)
  const waits = [pace.take(2 * MIB), pace.take(1 * MIB)]
  for (const wait of waits) assert.ok(wait instanceof Promise)
  await Promise.all(waits)
})
