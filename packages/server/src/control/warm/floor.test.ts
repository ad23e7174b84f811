import assert from 'node:assert/strict'
import { test } from 'node:test'
import { warmFloor } from './floor.ts'

const GIB = 2 ** 30

test('so many cells wait as take a hundredth of the memory, never fewer than a few or more than a burst needs', () => {
  const floors = [0, 0.25, 1, 4, 8, 16, 1024].map((gibibytes) => warmFloor(gibibytes * GIB))
  assert.deepEqual(floors, [4, 4, 10, 40, 81, 112, 112])
  assert.ok(warmFloor() >= 4 && warmFloor() <= 112)
})
