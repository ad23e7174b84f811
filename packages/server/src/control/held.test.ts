import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Held } from './held.ts'

test('held bytes are bounded per holder and in total, and are free again afterwards', () => {
  const held = new Held({ eachBytes: 100, allBytes: 250 })
  const first = held.open('a')
  const second = held.open('a')
  const third = held.open('a')
  assert.deepEqual(
    [first.take(40), second.take(40), third.take(20), second.take(1), first.take(1)],
    [true, true, true, false, false],
  )
  third[Symbol.dispose]()
  assert.equal(first.take(20), true)
  const others = ['b', 'c'].map((who) => held.open(who))
  assert.deepEqual(
    others.map((hold) => hold.take(75)),
    [true, true],
  )
  assert.equal(held.open(undefined).take(1), false)
  first[Symbol.dispose]()
  first[Symbol.dispose]()
  assert.equal(second.take(60), true)
})

test('of two calls that grow at the same time one succeeds', () => {
  const held = new Held({ eachBytes: 100, allBytes: 250 })
  using first = held.open('a')
  using second = held.open('a')
  assert.deepEqual([first.take(60), second.take(40)], [true, true])
  assert.deepEqual([second.take(10), first.take(10), second.take(10)], [false, true, false])
})

test('a call that is alone may hold more than its part, and then others are refused', () => {
  const held = new Held({ eachBytes: 100, allBytes: 250 })
  using alone = held.open('a')
  assert.deepEqual([alone.take(90), alone.take(900)], [true, true])
  assert.deepEqual([held.open('a').take(1), held.open('b').take(1)], [false, false])
})
