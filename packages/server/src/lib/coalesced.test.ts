import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { coalesced } from './coalesced.ts'

test('many who ask at once share a run, none runs beside another, and a failure is of its own run', async () => {
  const runs: PromiseWithResolvers<void>[] = []
  const run = coalesced(() => {
    runs.push(Promise.withResolvers())
    return runs.at(-1)!.promise
  })
  const first = run()
  await setImmediate()
  assert.equal(runs.length, 1)
  const others = Array.from({ length: 100 }, run)
  await setImmediate()
  assert.equal(runs.length, 1, 'what began before they asked is not for them')
  runs[0]!.reject(new Error('no'))
  await assert.rejects(first, /no/)
  await setImmediate()
  assert.equal(runs.length, 2)
  runs[1]!.resolve()
  await Promise.all(others)
  const last = run()
  await setImmediate()
  assert.equal(runs.length, 3)
  runs[2]!.resolve()
  await last
})
