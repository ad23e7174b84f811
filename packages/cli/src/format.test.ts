import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  clean,
  escapeControls,
  formatAge,
  formatBytes,
  formatCommand,
  formatCpu,
  formatLeft,
  formatTimeout,
} from './format.ts'
import { formatTable } from './table.ts'

test('sizes, ages and cores are short', () => {
  assert.deepEqual([0, 1023, 1024, 1536, 200 * 1024 ** 2, 5 * 1024 ** 3].map(formatBytes), [
    '0 B',
    '1023 B',
    '1.0 KiB',
    '1.5 KiB',
    '200 MiB',
    '5.0 GiB',
  ])
  const now = Date.parse('2026-01-02T00:00:00Z')
  const ages = [
    '2026-01-01T23:59:50Z',
    '2026-01-01T23:30:00Z',
    '2026-01-01T20:00:00Z',
    '2025-12-30T00:00:00Z',
  ]
  assert.deepEqual(
    ages.map((from) => formatAge(from, now)),
    ['10s', '30m', '4h', '3d'],
  )
  assert.deepEqual([1000, 500].map(formatCpu), ['1', '500m'])
  assert.equal(formatLeft('2026-01-02T03:20:00Z', now), '3h')
  assert.deepEqual([0, 1500, 300_000, 5_400_000, 86_400_000].map(formatTimeout), [
    'never',
    '1s500ms',
    '5m',
    '1h30m',
    '1d',
  ])
})

test('a command is quoted for a shell', () => {
  assert.equal(formatCommand(['sh', '-c', "echo 'hi' there"]), `sh -c 'echo '\\''hi'\\'' there'`)
  assert.equal(formatCommand('a | b'), 'a | b')
})

test('a column is as wide as its widest cell', () => {
  const rows = [
    { a: 'green', b: 'x' },
    { a: 'a', b: 'long' },
  ]
  assert.deepEqual(
    formatTable(rows, [
      ['A', ({ a }) => a],
      ['B', ({ b }) => b],
    ]),
    ['A      B', 'green  x', 'a      long'],
  )
})

test('control characters in foreign text do not reach the terminal', () => {
  assert.equal(clean('a\nb\tc\x1b[2Jd\x07\x9b'), 'a↵b·c·[2Jd··')
  assert.equal(escapeControls('a\n\x1b[2J\x9b'), 'a\\x0a\\x1b[2J\\x9b')
})
