import assert from 'node:assert/strict'
import {
  appendFileSync,
  mkdtempSync,
  readdirSync,
  readlinkSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { after, test } from 'node:test'
import { newId } from '@islet/contract'
import { Held } from '../../control/held.ts'
import { createLog } from '../../log.ts'
import { collectOutput } from '../processes/collect.ts'
import { KeptBytes } from './kept-bytes.ts'
import { OutputLog, removeOutput } from './output-log.ts'
import { numbersOf, OutputReader, segmentPath } from './output-reader.ts'
import { OutputRoom } from './output-room.ts'

const MIB = 1024 * 1024
const directory = mkdtempSync(join(tmpdir(), 'islet-output-log-'))
after(() => rmSync(directory, { recursive: true }))

const textOf = (pieces: { bytes: Buffer }[]) => Buffer.concat(pieces.map(({ bytes }) => bytes)).toString()

test('appended output is read back in order with its channels', () => {
  const log = new OutputLog(join(directory, 'order'), 1024)
  log.append('stdout', Buffer.from('one '))
  log.append('stderr', Buffer.from('two '))
  log.append('stdout', Buffer.from('three'))
  const kept = read(log, 1024)
  log.close()
  assert.deepEqual(
    kept.pieces.map(({ channel, bytes }) => [channel, bytes.toString()]),
    [
      ['stdout', 'one '],
      ['stderr', 'two '],
      ['stdout', 'three'],
    ],
  )
  assert.deepEqual([kept.start, kept.end, log.end], [0, 13, 13])
})

test('only the end is kept, the file stays bounded, and the offset keeps counting', () => {
  const path = join(directory, 'bounded')
  const log = new OutputLog(path, 1000)
  for (let index = 0; index < 1000; index++)
    log.append('stdout', Buffer.from(String(index).padStart(10, '.')))
  const kept = read(log, 1000)
  log.close()
  assert.equal(kept.end, 10_000)
  assert.equal(kept.start, 9000)
  assert.equal(textOf(kept.pieces).length, 1000)
  assert.ok(textOf(kept.pieces).endsWith('.......998.......999'))
})

test('a piece larger than the bound is cut at its front', () => {
  const log = new OutputLog(join(directory, 'large'), 10)
  log.append('stdout', Buffer.from(`${'x'.repeat(100)}the end`))
  assert.equal(textOf(read(log, 10).pieces), 'xxxthe end')
  log.close()
})

test('after a crash the log continues after its last whole piece', () => {
  const path = join(directory, 'crash')
  const first = new OutputLog(path, 1024)
  first.append('stdout', Buffer.from('whole'))
  first.close()
  for (const cut of [Buffer.from([1]), Buffer.from([1, 9, 0, 0, 0, 65, 66])]) {
    appendFileSync(path, cut)
    const log = OutputLog.recover(path, 1024)
    assert.equal(log.end % 5, 0)
    log.append('stderr', Buffer.from('again'))
    log.close()
  }
  const kept = readOutput(path, 1024)!
  assert.equal(textOf(kept.pieces), 'wholeagainagain')
  assert.equal(kept.end, 15)
})

test('a process that printed nothing has no file', () => {
  const log = new OutputLog(join(directory, 'silent'), 1024)
  assert.deepEqual(read(log, 1024), { pieces: [], start: 0, end: 0 })
  log.close()
  assert.equal(readOutput(join(directory, 'silent'), 1024), undefined)
})

test('old segments are removed as whole files, however much is printed', () => {
  const path = join(directory, 'segments')
  const log = new OutputLog(path, 80_000)
  const line = (index: number) => `${String(index).padStart(9, '.')}\n`
  for (let index = 0; index < 50_000; index++) log.append('stdout', Buffer.from(line(index)))
  const sizes = filesOf(path).map((name) => statSync(join(directory, name)).size)
  assert.ok(sizes.length > 4 && sizes.length < 20, String(sizes))
  const bytes = sizes.reduce((sum, size) => sum + size, 0)
  assert.ok(bytes > 80_000 && bytes < 200_000, `${bytes} bytes on disk`)
  const kept = read(log, 80_000)
  assert.deepEqual([kept.start, kept.end], [420_000, 500_000])
  const expected = Array.from({ length: 8000 }, (_, index) => line(42_000 + index)).join('')
  assert.equal(textOf(kept.pieces), expected)
  // A crash just after a new file was made, and before anything was in it.
  log.close()
  const next = Number(filesOf(path).at(-1)!.split('.').at(-1)) + 1
  appendFileSync(`${path}.${next}`, Buffer.from([1, 2, 3]))
  const again = OutputLog.recover(path, 80_000)
  assert.equal(again.end, 500_000)
  for (let index = 50_000; index < 60_000; index++) again.append('stderr', Buffer.from(line(index)))
  assert.ok(textOf(read(again, 80_000).pieces).endsWith(line(59_999)))
  assert.equal(read(again, 80_000).start, 520_000)
  again.close()
  removeOutput(path)
  assert.deepEqual(filesOf(path), [])
})

test('a reader gives the output at the time it was opened, whatever is printed and removed meanwhile', () => {
  const path = join(directory, 'reader')
  const log = new OutputLog(path, 40_000)
  const piece = (text: string) => Buffer.from(text.repeat(1000))
  for (let index = 0; index < 100; index++) log.append('stdout', piece('a'))
  const reader = OutputReader.open(path, 40_000)!
  const pieces = reader[Symbol.iterator]()
  const first = pieces.next().value!
  for (let index = 0; index < 100; index++) log.append('stdout', piece('b'))
  const text = textOf([first, ...pieces])
  assert.equal(text, 'a'.repeat(40_000))
  assert.deepEqual([reader.start, reader.end], [60_000, 100_000])
  reader.close()
  log.close()
})

test('a log that an earlier version kept in one file is read and continued', () => {
  const path = join(directory, 'old')
  const head = Buffer.alloc(8)
  head.writeBigUInt64LE(1000n)
  writeFileSync(path, Buffer.concat([head, Buffer.from([1, 3, 0, 0, 0]), Buffer.from('old')]))
  assert.deepEqual(readOutput(path, 100)?.start, 1000)
  const log = OutputLog.recover(path, 1024)
  assert.equal(log.end, 1003)
  log.append('stderr', Buffer.from(' and new'))
  log.close()
  assert.equal(textOf(readOutput(path, 1024)!.pieces), 'old and new')
})

test('the processes of a sandbox together keep no more than the bound: the oldest output is removed, but not what is being printed', async () => {
  const logs = new Map<string, OutputLog>()
  const room = new OutputRoom({
    dir: directory,
    boundBytes: 100_000,
    totalBytes: 1_000_000,
    running: (id) => logs.get(id),
    unended: () => new Set(),
    log: createLog({ level: 'silent' }),
  })
  const at = (id: string) => join(directory, 'sandbox', `${id}.log`)
  const print = (id: string, bytes: number) => {
    const log = new OutputLog(at(id), 80_000)
    for (let left = bytes; left > 0; left -= 1000) log.append('stdout', Buffer.alloc(1000, id))
    if (id === 'running') logs.set(id, log)
    else log.close()
    for (const name of filesOf(at(id))) utimesSync(join(directory, 'sandbox', name), ages[id]!, ages[id]!)
  }
  const ages: Record<string, number> = { running: 1000, first: 2000, second: 3000, third: 4000 }
  for (const id of Object.keys(ages)) print(id, 50_000)
  await room.sweep('sandbox')
  assert.equal(readOutput(at('first'), 80_000), undefined)
  assert.equal(readOutput(at('third'), 80_000)?.start, 0)
  const running = readOutput(at('running'), 80_000)!
  assert.ok(running.start > 0 && running.end === 50_000, 'its end is kept')
  const second = readOutput(at('second'), 80_000)!
  assert.deepEqual([second.start > 0, second.end], [true, 50_000])
  logs.get('running')!.close()
})

test('output of many running processes is bounded too, and each log continues at its offset, also after a crash', async () => {
  const logs = new Map<string, OutputLog>()
  const boundBytes = 100_000
  const log = createLog({ level: 'silent' })
  const running = (id: string) => logs.get(id)
  const room = new OutputRoom({
    dir: directory,
    boundBytes,
    totalBytes: 1_000_000,
    running,
    unended: () => new Set(),
    log,
  })
  const at = (id: string) => join(directory, 'many', `${id}.log`)
  for (let index = 0; index < 50; index++) {
    const id = `p${index}`
    logs.set(id, new OutputLog(at(id), 80_000))
    logs.get(id)!.append('stdout', Buffer.alloc(9000, 'a'))
  }
  await room.sweep('many')
  const files = readdirSync(join(directory, 'many'))
  const bytes = files.reduce((sum, name) => sum + statSync(join(directory, 'many', name)).size, 0)
  assert.ok(bytes <= boundBytes + 50 * 8, `${bytes} bytes on disk`)
  assert.equal(files.length, 50)
  assert.deepEqual(read(logs.get('p0')!, 80_000), { pieces: [], start: 9000, end: 9000 })
  for (const [id, each] of logs) {
    each.close()
    const again = OutputLog.recover(at(id), 80_000)
    assert.equal(again.end, 9000)
    again.append('stderr', Buffer.from('more'))
    assert.ok(textOf(read(again, 80_000).pieces).endsWith('more'))
    assert.equal(again.end, 9004)
    again.close()
  }
})

test('segments are small however much is kept, and a reader that pauses holds few of them', () => {
  const path = join(directory, 'stalled')
  const log = new OutputLog(path, 256 * 1024 * 1024)
  const piece = Buffer.alloc(64 * 1024, 'x')
  for (let index = 0; index < 256; index++) log.append('stdout', piece)
  const sizes = filesOf(path).map((name) => statSync(join(directory, name)).size)
  assert.ok(Math.max(...sizes) <= 1024 * 1024, String(sizes))
  const all = 256 * 1024 * 1024
  for (const open of [() => log.open(all)!, () => OutputReader.open(path, all)!]) {
    const reader = open()
    assert.deepEqual([reader.start, reader.end], [0, 256 * piece.length])
    const pieces = reader[Symbol.iterator]()
    pieces.next()
    const held = readdirSync('/proc/self/fd').filter((fd) => linkOf(fd).startsWith(path)).length
    assert.ok(held <= 3, `${held} files are open`)
    reader.close()
    assert.equal([...pieces].length, 0)
  }
  const reader = log.open(all)!
  log.drop(10)
  const found = [...reader]
  const gap = found.findIndex(({ at }, index) => index > 0 && at !== found[index - 1]!.at + piece.length)
  assert.ok(gap > 0 && found[gap]!.at > found[gap - 1]!.at + piece.length, 'what was removed is left out')
  assert.equal(found.at(-1)!.at + piece.length, reader.end)
  log.close()
  removeOutput(path)
})

test('a million pieces of one byte take little more memory than their bytes', () => {
  const before = process.memoryUsage().heapUsed
  const disk = new Held({ eachBytes: MIB, allBytes: 4 * MIB }).open('one')
  const bytes = () => new KeptBytes({ path: join(directory, newId('request')), disk, hasRoom: () => true })
  using output = collectOutput(MIB, { together: true, bytes })
  const byte = Buffer.from('x')
  for (let index = 0; index < MIB; index++) output.output(index % 2 ? 'stdout' : 'stderr', byte)
  const grown = process.memoryUsage().heapUsed - before
  assert.equal([...output.texts('utf8').stdout].join('').length, MIB / 2)
  assert.equal([...output.together('utf8')].join('').length, MIB)
  assert.ok(grown < 64 * 1024 * 1024, `${grown} bytes`)
})

function linkOf(fd: string): string {
  try {
    return readlinkSync(`/proc/self/fd/${fd}`)
  } catch {
    return ''
  }
}

function filesOf(path: string): string[] {
  return numbersOf(path).map((number) => basename(segmentPath(path, number)))
}

test('the place in each channel is known however much was removed, also after a crash', () => {
  const path = join(directory, 'places')
  const log = new OutputLog(path, 20_000)
  for (let index = 0; index < 1000; index++) {
    log.append('stdout', Buffer.alloc(100, 'o'))
    log.append('stderr', Buffer.alloc(1 + (index % 3), 'e'))
  }
  const stderr = Array.from({ length: 1000 }, (_, index) => 1 + (index % 3)).reduce((sum, n) => sum + n, 0)
  const end = { combined: 100_000 + stderr, stdout: 100_000, stderr }
  assert.deepEqual(log.place, end)
  for (const reader of [log.open(Infinity)!, OutputReader.open(path, Infinity)!]) {
    assert.ok(reader.place.combined > 50_000 && reader.place.combined < 90_000, String(reader.place.combined))
    const sizes = { stdout: 0, stderr: 0 }
    for (const { channel, bytes } of reader) sizes[channel] += bytes.length
    assert.equal(reader.place.stdout + sizes.stdout, end.stdout)
    assert.equal(reader.place.stderr + sizes.stderr, end.stderr)
  }
  log.close()
  const again = OutputLog.recover(path, 20_000)
  assert.deepEqual(again.place, end)
  again.close()
})

test('output that the guest has dropped counts as printed, and no gap is kept', () => {
  const path = join(directory, 'skipped')
  const before = new OutputLog(path, 1024)
  before.append('stdout', Buffer.from('early'))
  before.close()
  const log = OutputLog.recover(path, 1024)
  log.skipTo(3)
  assert.equal(textOf(read(log, 1024).pieces), 'early')
  log.skipTo(100)
  log.append('stdout', Buffer.from('late'))
  const { start, end, pieces } = read(log, 1024)
  log.close()
  assert.deepEqual([start, end, textOf(pieces)], [100, 104, 'late'])
})

test('while the disk is full nothing is kept but everything is counted; afterwards output is kept again', () => {
  let hasRoom = true
  const path = join(directory, 'low')
  const log = new OutputLog(path, 80_000, { hasRoom: () => hasRoom, wrote: () => {} })
  log.append('stdout', Buffer.from('before'))
  hasRoom = false
  log.append('stdout', Buffer.from('meanwhile'))
  assert.deepEqual([filesOf(path), log.end], [[], 15])
  hasRoom = true
  log.append('stdout', Buffer.from('after'))
  const { start, end, pieces } = read(log, 80_000)
  assert.deepEqual([start, end, textOf(pieces)], [15, 20, 'after'])
  log.close()
})

/** The last `maxBytes` of a log, in memory. */
function read(log: OutputLog, maxBytes: number) {
  const reader = log.open(maxBytes)
  return { start: reader?.start ?? log.end, end: log.end, pieces: [...(reader ?? [])] }
}

function readOutput(path: string, maxBytes: number) {
  const reader = OutputReader.open(path, maxBytes)
  return reader && { start: reader.start, end: reader.end, pieces: [...reader] }
}
