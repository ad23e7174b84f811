import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import { Locks } from './locks.ts'

test('work on a common name runs one after the other, in order; other work does not wait', async () => {
  const locks = new Locks()
  const seen: string[] = []
  const opened = Promise.withResolvers<void>()
  const first = locks.run(['a', 'b'], async () => {
    await opened.promise
    seen.push('a b')
  })
  const second = locks.run(['b', 'c'], async () => void seen.push('b c'))
  const third = locks.run(['c', 'a'], async () => void seen.push('c a'))
  await locks.run(['d'], async () => void seen.push('d'))
  opened.resolve()
  await Promise.all([first, second, third])
  assert.deepEqual(seen, ['d', 'a b', 'b c', 'c a'])
})

test('many holders of many names never overlap and never deadlock, also when some fail', async () => {
  const locks = new Locks()
  const held = new Set<string>()
  const names = ['a', 'b', 'c', 'd', 'e']
  const work = Array.from({ length: 200 }, (_, index) => {
    const mine = names.filter((_, at) => (index >> at) & 1).reverse()
    return locks.run([...mine, ...mine], async () => {
      for (const name of mine) assert.ok(!held.has(name))
      for (const name of mine) held.add(name)
      await setTimeout(0)
      for (const name of mine) held.delete(name)
      if (index % 7 === 0) throw new Error('failed')
    })
  })
  const results = await Promise.allSettled(work)
  assert.equal(results.filter(({ status }) => status === 'rejected').length, 29)
})
