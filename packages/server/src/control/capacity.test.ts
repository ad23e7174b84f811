import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Capacity } from './capacity.ts'

const GIB = 1024 ** 3
const storage = { sizeBytes: () => 100 * GIB }

test('the limits of the operator hold for requests and for saved states', () => {
  const capacity = new Capacity(storage, { memoryBytes: GIB / 4, cpuMillis: 500, pids: 64, diskBytes: GIB })
  for (const asked of [{ memory: GIB }, { cpu: 1000 }, { pids: 65 }, { disk: 2 * GIB }])
    assert.throws(() => capacity.assertFits(asked), { code: 'limit_too_high' })
  capacity.assertFits({ memory: GIB / 4, cpu: 500, pids: 64, disk: GIB })
  const saved = { memoryBytes: 8 * GIB, cpuMillis: 8000, pids: 9999, diskBytes: 9 * GIB }
  assert.deepEqual(capacity.lower(saved), { memoryBytes: GIB / 4, cpuMillis: 500, pids: 64, diskBytes: GIB })
})

test('without ceilings the machine is the limit', () => {
  const capacity = new Capacity(storage)
  assert.equal(capacity.has.diskBytes, 100 * GIB)
  assert.throws(() => capacity.assertFits({ memory: 2 ** 50 }), { code: 'limit_too_high' })
})
