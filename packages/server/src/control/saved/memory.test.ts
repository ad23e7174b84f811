import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { createLog } from '../../log.ts'
import { spareBytes } from '../../storage/room.ts'
import type { Fleet } from '../fleet.ts'
import { Memory } from './memory.ts'

const directory = mkdtempSync(join(tmpdir(), 'islet-memory-'))
after(() => rmSync(directory, { recursive: true }))

const MIB = 1024 ** 2
/** No sandbox is saved here. */
const engine = {} as Fleet['engine']

const memoryOf = (limitBytes: number) =>
  new Memory({ engine, log: createLog({ level: 'silent' }) }, { dir: join(directory, 'memory'), limitBytes })

test('memory that would fill the disk is not saved, and leaves nothing', async () => {
  const memory = memoryOf(Number.POSITIVE_INFINITY)
  const path = memory.path('sav-1')
  const spare = await spareBytes([directory])
  assert.equal(await memory.takeRoom('sav-1', spare + 2 ** 40), false)
  assert.ok(!existsSync(path))
  assert.equal(await memory.takeRoom('sav-1', 1), spare > 1)
  assert.equal(statSync(path).mode & 0o777, 0o700)
  assert.equal(statSync(join(directory, 'memory')).mode & 0o777, 0o700)
  await memory.remove('sav-1')
})

test('all saved memory together has a limit, also that of earlier servers, and removing makes room', async () => {
  const before = memoryOf(10 * MIB)
  for (const name of ['sav-kept', 'sav-left']) {
    assert.ok(await before.takeRoom(name, MIB))
    writeFileSync(join(before.path(name), 'pages'), Buffer.alloc(4 * MIB, 1))
  }
  const memory = memoryOf(10 * MIB)
  await memory.start(new Set(['sav-kept']))
  assert.ok(!existsSync(memory.path('sav-left')))
  assert.ok(await memory.copy('sav-kept', 'sav-copy'))
  assert.equal(await memory.copy('sav-kept', 'sav-third'), false)
  assert.ok(!existsSync(memory.path('sav-third')))
  await memory.remove('sav-kept')
  assert.ok(await memory.copy('sav-copy', 'sav-third'))
})
