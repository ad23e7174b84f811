import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { dataOf, writeReport } from './report.ts'
import { Tally } from './tally.ts'

test('a report takes the place of the last one, and the rest of the page stays', () => {
  const directory = mkdtempSync(join(tmpdir(), 'islet-report-'))
  try {
    const page = join(directory, 'page.md')
    const options = { durationMs: 60_000, seed: 1, isolation: 'namespace', diskFull: false } as const
    const [first, second] = [new Tally(), new Tally()]
    first.of('exec').acknowledged = 4711
    writeReport(page, { options, tally: first, elapsedMs: 60_000 })
    assert.match(readFileSync(page, 'utf8'), /\| exec +\| +4711/)
    second.killed('guest')
    writeReport(page, { options, tally: second, elapsedMs: 60_000 })
    const text = readFileSync(page, 'utf8')
    assert.doesNotMatch(text, /4711/)
    assert.match(text, /1: guest 1/)
    assert.match(text, /<!-- campaign -->\n<!-- \/campaign -->\n$/)
    assert.equal(text.match(/<!-- soak -->/g)?.length, 1)
  } finally {
    rmSync(directory, { recursive: true })
  }
})

test('errors of the log are counted by their message', () => {
  const tally = new Tally()
  tally.keepErrors(
    '{"level":"error","time":"…","msg":"not done"}\n{"level":"warn","msg":"fine"}\nislet is up',
  )
  const { errors } = dataOf({
    options: { durationMs: 1, seed: 1, isolation: 'gvisor', diskFull: false },
    tally,
    elapsedMs: 1,
  })
  assert.deepEqual(errors, { 'not done': 1 })
})
