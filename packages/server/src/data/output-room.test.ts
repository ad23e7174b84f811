import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, utimesSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { createLog } from '../log.ts'
import { OutputLog } from './output-log.ts'
import { numbersOf, segmentPath } from './output-reader.ts'
import { OutputRoom } from './output-room.ts'

const dir = mkdtempSync(join(tmpdir(), 'islet-output-room-'))
after(() => rmSync(dir, { recursive: true }))

const pathOf = (sandboxId: string, id: string): string => join(dir, sandboxId, `${id}.log`)

function print(path: string, bytes: number): void {
  const log = new OutputLog(path, 80_000)
  for (let left = bytes; left > 0; left -= 1000) log.append('stdout', Buffer.alloc(1000, 'x'))
  log.close()
}

function roomFor(unended: string[], boundBytes: number): OutputRoom {
  return new OutputRoom({
    dir,
    boundBytes,
    running: () => undefined,
    unended: () => new Set(unended),
    log: createLog({ level: 'silent' }),
  })
}

test('what a process has printed that runs and is not followed yet stays, so that it goes on where it was', async () => {
  const [found, ended] = [pathOf('restarted', 'found'), pathOf('restarted', 'ended')]
  print(found, 50_000)
  for (const number of numbersOf(found)) utimesSync(segmentPath(found, number), 1000, 1000)
  print(ended, 50_000)
  await roomFor(['found'], 30_000).sweep('restarted')
  assert.equal(OutputLog.recover(found, 80_000).end, 50_000)
  assert.deepEqual(numbersOf(ended), [], 'the other makes room')
})

test('a clock that was set back while a process printed leaves no gap in what is kept of it', async () => {
  const path = pathOf('back', 'one')
  print(path, 80_000)
  const numbers = numbersOf(path)
  const middle = numbers[numbers.length >> 1]!
  for (const number of numbers) {
    const at = number < middle ? 5000 + number : number
    utimesSync(segmentPath(path, number), at, at)
  }
  await roomFor([], 45_000).sweep('back')
  const kept = numbersOf(path)
  assert.ok(kept.length > 0 && kept.length < numbers.length)
  assert.deepEqual(kept, numbers.slice(-kept.length), 'its end is kept')
})
