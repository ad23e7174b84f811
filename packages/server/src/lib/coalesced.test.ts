import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { coalesced } from './coalesced.ts'

test('concurrent callers share a run, runs never overlap, and a failure concerns its own run only', async () => {
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
  assert.equal(runs.length, 1, 'a run that began before the calls is not shared')
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
