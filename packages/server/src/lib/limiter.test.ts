import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { Limiter } from './limiter.ts'

test('only the given number runs at once, all run, and a failure frees its place', async () => {
  const limiter = new Limiter(3)
  let running = 0
  let most = 0
  const results = await Promise.allSettled(
    Array.from({ length: 20 }, (_, index) =>
      limiter.run(async () => {
        most = Math.max(most, ++running)
        await setImmediate()
        running--
        if (index % 5 === 0) throw new Error('no')
        return index
      }),
    ),
  )
  assert.equal(most, 3)
  assert.equal(results.filter((result) => result.status === 'fulfilled').length, 16)
})
