import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { Walks } from './walks.ts'

test('concurrent callers share the walk of a layer, and only a few walks run at once', async () => {
  const walks = new Walks(2)
  const begun: PromiseWithResolvers<number>[] = []
  const walk = () => {
    begun.push(Promise.withResolvers())
    return begun.at(-1)!.promise
  }
  const same = Array.from({ length: 100 }, () => walks.of('a', walk))
  const others = ['b', 'c', 'd'].map((layer) => walks.of(layer, walk))
  await setImmediate()
  assert.equal(begun.length, 2)
  begun[0]!.resolve(7)
  assert.deepEqual(new Set(await Promise.all(same)), new Set([7]))
  await setImmediate()
  assert.equal(begun.length, 3)
  begun[1]!.reject(new Error('no'))
  await assert.rejects(others[0]!, /no/)
  await setImmediate()
  for (const rest of begun.slice(2)) rest.resolve(1)
  assert.deepEqual(await Promise.all(others.slice(1)), [1, 1])
  const again = walks.of('a', walk)
  await setImmediate()
  begun.at(-1)!.resolve(8)
  assert.equal(await again, 8)
})
