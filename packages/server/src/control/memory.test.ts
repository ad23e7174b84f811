import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { spareBytes } from '../storage/room.ts'
import { hasRoom } from './memory.ts'

const directory = mkdtempSync(join(tmpdir(), 'islet-memory-'))
after(() => rmSync(directory, { recursive: true }))

test('memory is not written where it would take the last of the disk, and leaves nothing', async () => {
  const memory = join(directory, 'memory', 'sav-1')
  const spare = await spareBytes([directory])
  assert.equal(await hasRoom(memory, spare + 2 ** 40), false)
  assert.ok(!existsSync(memory))
  assert.equal(await hasRoom(memory, 1), spare > 1)
  assert.equal(statSync(memory).mode & 0o777, 0o700)
  assert.equal(statSync(join(directory, 'memory')).mode & 0o777, 0o700)
})
