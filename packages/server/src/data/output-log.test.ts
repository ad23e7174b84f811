import assert from 'node:assert/strict'
import { appendFileSync, mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { OutputLog, readOutput } from './output-log.ts'

const directory = mkdtempSync(join(tmpdir(), 'islet-output-log-'))
after(() => rmSync(directory, { recursive: true }))

const textOf = (pieces: { bytes: Buffer }[]) => Buffer.concat(pieces.map(({ bytes }) => bytes)).toString()

test('what is appended is read back in order with its channels', () => {
  const log = new OutputLog(join(directory, 'order'), 1024)
  log.append('stdout', Buffer.from('one '))
  log.append('stderr', Buffer.from('two '))
  log.append('stdout', Buffer.from('three'))
  const kept = log.read()
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

test('only the end is kept, the file stays bounded, and the offset goes on counting', () => {
  const path = join(directory, 'bounded')
  const log = new OutputLog(path, 1000)
  for (let index = 0; index < 1000; index++)
    log.append('stdout', Buffer.from(String(index).padStart(10, '.')))
  const kept = log.read()
  log.close()
  assert.equal(kept.end, 10_000)
  assert.equal(kept.start, 9000)
  assert.equal(textOf(kept.pieces).length, 1000)
  assert.ok(textOf(kept.pieces).endsWith('.......998.......999'))
  assert.ok(statSync(path).size < 4000)
})

test('a piece larger than what is kept is cut at its front', () => {
  const log = new OutputLog(join(directory, 'large'), 10)
  log.append('stdout', Buffer.from(`${'x'.repeat(100)}the end`))
  assert.equal(textOf(log.read().pieces), 'xxxthe end')
  log.close()
})

test('after a crash the log goes on behind its last whole piece', () => {
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
  assert.deepEqual(log.read(), { pieces: [], start: 0, end: 0 })
  log.close()
  assert.equal(readOutput(join(directory, 'silent'), 1024), undefined)
})
