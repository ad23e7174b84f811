import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { root } from '../tests/support/server.ts'
import { boardPage, pageSection, pagesWith, readmeSection, replaceSection } from './board.ts'
import { judged } from './budgets.ts'
import type { Row } from './figure.ts'
import { summarise } from './measure.ts'
import { fullTable } from './table.ts'

const machine = {
  takenAt: '2026-01-02T03:04:05.000Z',
  commit: 'abc1234',
  changed: false,
  cores: 2,
  cpu: 'Some CPU',
  memoryGiB: 8,
  kernel: '6.1',
  node: 'v24.0.0',
}
const rows: Row[] = judged([
  {
    id: 'exec',
    figure: 'exec',
    unit: 'ms',
    islet: summarise([2, 2, 40], 1),
    docker: summarise([80]),
    floor: summarise([1]),
  },
  {
    id: 'file-up',
    figure: 'file up',
    unit: 'MB/s',
    islet: summarise([600]),
    docker: summarise([300]),
    floor: summarise([1200]),
  },
  { id: 'other', figure: 'other', unit: 'ms', islet: summarise([5]) },
])
const plots = [
  { file: 'a.svg', alt: 'an a', drawing: '' },
  { file: 'b.svg', alt: 'a b', drawing: '' },
]
const cells = (table: string) =>
  table.split('\n').map((line) =>
    line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim()),
  )

test('a row has its numbers, those of Docker and the floor, and the budgets it missed', () => {
  const [, , exec] = cells(fullTable(rows))
  assert.deepEqual(exec!.slice(0, 12), [
    'exec',
    'ms',
    '3',
    '1',
    '2',
    '40',
    '40',
    '80',
    '40×',
    '1',
    '2×',
    'p50 ≤ 2.5, p99 ≤ 8, ≤ 1/20 of Docker',
  ])
  assert.equal(exec![12], '**missed**: p99 ≤ 8')
})

test('a higher rate is faster', () => {
  const [, , , up] = cells(fullTable(rows))
  assert.deepEqual(up!.slice(7, 11), ['300', '2×', '1,200', '2×'])
  assert.equal(up![12], 'yes')
})

test('every line of a table has the same number of cells', () => {
  const counts = cells(fullTable(rows)).map((line) => line.length)
  assert.equal(new Set(counts).size, 1)
})

test('the page says how many operations failed, which, and how each figure is taken', () => {
  const page = boardPage({
    machine,
    rows,
    methods: { exec: 'Many times.' },
    failures: ['exec: it broke', 'exec: it broke'],
  })
  assert.match(page, /Failed operations: 2/)
  assert.match(page, /- 2 × exec: it broke/)
  assert.match(page, /- \*\*exec\*\*: Many times\./)
})

test('the README has its six rows at most, one plot, and a link to all figures', () => {
  const section = readmeSection({ machine, rows, failures: [] }, plots)
  assert.match(section, /\| exec +\| 2 ms +\| 40 ms +\| 80 ms +\| 40× +\|/)
  assert.doesNotMatch(section, /\| (file up|other)/)
  assert.match(section, /!\[an a\]\(bench\/results\/a\.svg\)/)
  assert.doesNotMatch(section, /b\.svg/)
  assert.match(section, /docs\/performance\.md/)
})

test('docs/performance.md has the rows with a budget, the other plots, the machine and how to repeat the run', () => {
  const section = pageSection({ machine, rows, failures: ['exec: it broke'] }, plots)
  assert.match(section, /2026-01-02 03:04 UTC, commit abc1234, 2 cores \(Some CPU\)/)
  assert.match(section, /Failed operations: 1\. Budgets missed: 1\./)
  assert.match(section, /!\[a b\]\(\.\.\/bench\/results\/b\.svg\)/)
  assert.doesNotMatch(section, /a\.svg/)
  assert.match(section, /npm run bench -- --docker/)
  assert.doesNotMatch(section, /\| other/)
})

test('README.md and docs/performance.md show the figures of results/latest.json', () => {
  const board = JSON.parse(readFileSync(join(root, 'bench/results/latest.json'), 'utf8'))
  for (const [path, text] of Object.entries(pagesWith(board)))
    assert.equal(readFileSync(join(root, path), 'utf8'), text, path)
})

test('only the text between the marks is replaced, and a second time changes nothing', () => {
  const page = 'before\n<!-- board -->\nold\n<!-- /board -->\nafter\n'
  const once = replaceSection(page, 'new', 'README.md')
  assert.equal(once, 'before\n<!-- board -->\nnew\n<!-- /board -->\nafter\n')
  assert.equal(replaceSection(once, 'new', 'README.md'), once)
  assert.throws(() => replaceSection('no marks', 'new', 'a.md'), /a\.md has no/)
})
