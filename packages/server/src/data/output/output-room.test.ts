import assert from 'node:assert/strict'
import { mkdtempSync, readdirSync, rmSync, statSync, utimesSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { createLog } from '../../log.ts'
import { OutputLog } from './output-log.ts'
import { numbersOf, segmentPath } from './output-reader.ts'
import { OutputRoom } from './output-room.ts'

const dir = mkdtempSync(join(tmpdir(), 'islet-output-room-'))
after(() => rmSync(dir, { recursive: true }))

const pathOf = (sandboxId: string, id: string): string => join(dir, sandboxId, `${id}.log`)

const bytesOf = (sandboxId: string): number =>
  readdirSync(join(dir, sandboxId)).reduce(
    (sum, name) => sum + (statSync(join(dir, sandboxId, name), { throwIfNoEntry: false })?.size ?? 0),
    0,
  )

async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await setImmediate()
}

function print(path: string, bytes: number): void {
  const log = new OutputLog(path, 80_000)
  for (let left = bytes; left > 0; left -= 1000) log.append('stdout', Buffer.alloc(1000, 'x'))
  log.close()
}

function roomFor(unended: string[], boundBytes: number, totalBytes = 1_000_000): OutputRoom {
  return new OutputRoom({
    dir,
    boundBytes,
    totalBytes,
    running: () => undefined,
    unended: () => new Set(unended),
    log: createLog({ level: 'silent' }),
  })
}

test('output of a running process that is not followed yet stays, so that its log continues at its offset', async () => {
  const [found, ended] = [pathOf('restarted', 'found'), pathOf('restarted', 'ended')]
  print(found, 50_000)
  for (const number of numbersOf(found)) utimesSync(segmentPath(found, number), 1000, 1000)
  print(ended, 50_000)
  await roomFor(['found'], 30_000).sweep('restarted')
  assert.equal(OutputLog.recover(found, 80_000).end, 50_000)
  assert.deepEqual(numbersOf(ended), [], 'the other makes room')
})

test('a clock that was set back while a process printed leaves no gap in its kept output', async () => {
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

test('all sandboxes together keep no more than the total: the largest one loses its oldest output, the others keep theirs', async () => {
  const most = pathOf('most', 'one')
  const little = pathOf('little', 'one')
  print(most, 70_000)
  print(little, 20_000)
  const before = readdirSync(join(dir, 'little'))
  const room = roomFor([], 500_000, 60_000)
  for (const id of ['most', 'little']) await room.sweep(id)
  room.printed('little', 1000)
  await until(() => bytesOf('most') + bytesOf('little') <= 60_000)
  assert.deepEqual(readdirSync(join(dir, 'little')), before)
  const kept = numbersOf(most)
  assert.ok(kept.length > 0 && kept[0]! > 0, 'its end is kept')
})

test('output that earlier servers kept counts too', async () => {
  print(pathOf('before', 'one'), 70_000)
  const room = roomFor([], 500_000, 30_000)
  await until(() => {
    room.printed('now', 1)
    return bytesOf('before') <= 30_000
  })
})
