// npm run hostile [-- --report]: every attack, one file after the other, and the table of what happened. --report writes it to
// docs/reliability.md. Run it on a machine that does nothing else: how long the neighbour waits is a figure of that page.
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { table } from '../../bench/table.ts'
import { needs } from '../support/programs.ts'
import { root } from '../support/server.ts'
import type { Row } from './attack.ts'

needs('git')

const { values } = parseArgs({ options: { report: { type: 'boolean' } } })
const scratch = mkdtempSync(join(tmpdir(), 'islet-hostile-'))
const campaign = join(scratch, 'rows')
writeFileSync(campaign, '')
const { status } = spawnSync('bash', ['scripts/test', 'tests/hostile/*.test.ts'], {
  cwd: root,
  stdio: 'inherit',
  env: { ...process.env, ISLET_TEST_CAMPAIGN: campaign, ISLET_TEST_CONCURRENCY: '1' },
})
const rows = readFileSync(campaign, 'utf8')
  .trim()
  .split('\n')
  .map((line) => JSON.parse(line) as Row)
rmSync(scratch, { recursive: true })
const page = pageOf(rows)
console.log(page)
if (values.report && status === 0) writeSection(page)
process.exitCode = status ?? 1

function pageOf(rows: readonly Row[]): string {
  const tries = rows.reduce((sum, row) => sum + row.tries, 0)
  const cells = rows.map((row) => [
    row.area,
    row.attack,
    row.isolation,
    row.tries.toLocaleString('en'),
    `${row.neighbourP50Ms} ms`,
    `${row.neighbourP99Ms} ms`,
    `${Math.round(row.growthBytes / 1024 ** 2)} MiB`,
  ])
  const head = ['area', 'attack', 'isolation', 'tries', 'neighbour p50', 'neighbour p99', 'server grew by']
  const commit = spawnSync('git', ['rev-parse', '--short', 'HEAD'], {
    cwd: root,
    encoding: 'utf8',
  }).stdout.trim()
  const summary = `${rows.length} attacks, ${tries.toLocaleString('en')} tries, commit ${commit}. Every one of them held.`
  return `${summary}\n\n${table(head, cells)}`
}

function writeSection(section: string): void {
  const path = join(root, 'docs/reliability.md')
  const page = readFileSync(path, 'utf8')
  const marks = /(<!-- campaign -->\n)[\s\S]*(<!-- \/campaign -->)/
  if (!marks.test(page)) throw new Error('docs/reliability.md has no place for the campaign')
  writeFileSync(
    path,
    page.replace(marks, (_, from: string, to: string) => `${from}${section}\n${to}`),
  )
}
