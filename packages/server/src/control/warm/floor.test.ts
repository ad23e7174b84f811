import assert from 'node:assert/strict'
import { test } from 'node:test'
import { warmFloor } from './floor.ts'

const GIB = 2 ** 30

test('the floor is what a hundredth of the memory pays for, within its bounds', () => {
  const floors = [0, 0.25, 1, 4, 8, 16, 1024].map((gibibytes) => warmFloor(gibibytes * GIB))
  assert.deepEqual(floors, [4, 4, 10, 40, 81, 112, 112])
  assert.ok(warmFloor() >= 4 && warmFloor() <= 112)
})
