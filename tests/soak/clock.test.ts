import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { Clock } from './clock.ts'

const HOUR_MS = 3_600_000
const directory = mkdtempSync(join(tmpdir(), 'islet-clock-'))
after(() => rmSync(directory, { recursive: true }))

test('a value is there until the clock was beyond its end, gone while it is, and either when the clock was set back', () => {
  const clock = new Clock(join(directory, 'fate'))
  const value = { setAt: Date.now(), expiresAt: Date.now() + HOUR_MS }
  const fate = () => clock.fate(value, Date.now() + 10_000)
  assert.equal(fate(), 'there')
  clock.jump(HOUR_MS / 2)
  assert.equal(fate(), 'there')
  clock.jump(HOUR_MS)
  assert.equal(fate(), 'gone')
  clock.jump(-HOUR_MS)
  assert.equal(fate(), 'either')
  assert.equal(clock.fate({ setAt: 0 }, 0), 'there')
})

test('a process goes by the shifted clock, and its monotonic clock does not', () => {
  const file = join(directory, 'shift')
  new Clock(file).jump(5 * HOUR_MS)
  const preload = fileURLToPath(new URL('shifted-clock.ts', import.meta.url))
  const script =
    'console.log(JSON.stringify([Date.now(), new Date().getTime(), Date.parse(Date()), performance.now(), new Date(5).getTime(), new Date() instanceof Date]))'
  const printed = execFileSync(process.execPath, [`--import=${preload}`, '-e', script], {
    env: { ...process.env, ISLET_TEST_CLOCK: file },
    encoding: 'utf8',
  })
  const [now, made, told, monotonic, given, isDate] = JSON.parse(printed)
  for (const time of [now, made, told]) assert.ok(Math.abs(time - Date.now() - 5 * HOUR_MS) < HOUR_MS)
  assert.ok(monotonic < HOUR_MS)
  assert.deepEqual([given, isDate], [5, true])
})
