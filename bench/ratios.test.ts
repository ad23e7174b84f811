import assert from 'node:assert/strict'
import { test } from 'node:test'
import { worsened } from './ratios.ts'

test('what costs more than a third more is said', () => {
  assert.deepEqual(worsened({ exec: 4.1 }, { exec: 3 }), ['exec: 4.1 times, was 3: 37 % worse'])
})

test('a third more or less is not', () => {
  assert.deepEqual(worsened({ exec: 4, store: 1 }, { exec: 3, store: 9 }), [])
})

test('a figure that is new has nothing to be worse than, and one that is gone is not missed', () => {
  assert.deepEqual(worsened({ fresh: 100 }, { gone: 1 }), [])
})
