// The results of a soak, as Markdown and as JSON.
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { cpus } from 'node:os'
import { table } from '../../bench/table.ts'
import type { Soaked } from './soak.ts'
import { quantile } from './tally.ts'

const MIB = 1024 ** 2
const BEGIN = '<!-- soak -->'
const END = '<!-- /soak -->'

const NEW_PAGE = `# Reliability

Two kinds of tests: does a server keep everything that it has acknowledged, and what do neighbours notice of an attack? The programs
that measure write the figures: \`npm run soak -- --minutes 60 --report docs/reliability.md\`, and the campaign of \`tests/hostile\`.

## Soak

Clients run random operations on sandboxes and compare every answer with a model, while the server, its warden and the first processes of sandboxes
are killed, the disk fills up and the clock jumps. One difference ends the run and fails it.

${BEGIN}
${END}

## Attacks

<!-- campaign -->
<!-- /campaign -->
`

/** Replaces what the last soak wrote there. */
export function writeReport(file: string, soaked: Soaked): void {
  const page = existsSync(file) ? readFileSync(file, 'utf8') : NEW_PAGE
  const [begin, end] = [page.indexOf(BEGIN), page.indexOf(END)]
  if (begin < 0 || end < begin) throw new Error(`${file} has no lines ${BEGIN} and ${END}.`)
  const before = page.slice(0, begin + BEGIN.length)
  writeFileSync(file, `${before}\n${markdownOf(soaked)}${page.slice(end)}`)
}

export function markdownOf(soaked: Soaked): string {
  const { figures, operations, refused } = dataOf(soaked)
  const strings = (rows: (string | number)[][]) => rows.map((row) => row.map(String))
  const rows = operations.map(({ kind, ...counts }) => [
    kind,
    counts.acknowledged,
    counts.cutOff,
    counts.refused,
  ])
  return [
    table(['figure', 'value'], strings(Object.entries(figures))),
    table(['operation', 'acknowledged', 'cut off', 'refused'], strings(rows)),
    `Refused, by code: ${refused || 'nothing'}.\n`,
  ].join('\n\n')
}

/** A run that reaches its end has lost nothing and found no difference: the first one ends it with an error. */
export function dataOf({ options, tally, elapsedMs }: Soaked) {
  const { kills, recovery, rssBytes } = tally
  const ms = (values: number[], part: number) => `${Math.round(quantile(values, part) ?? 0)} ms`
  const spread = (values: number[]) => `${ms(values, 0.5)}, ${ms(values, 0.99)}, ${ms(values, 1)}`
  const mib = (values: number[]) => `${Math.round((quantile(values, 0.5) ?? 0) / MIB)} MiB`
  const list = (counts: Map<string, number>) =>
    [...counts].map(([name, count]) => `${name} ${count}`).join(', ')
  const figures = {
    minutes: Math.round(elapsedMs / 6000) / 10,
    'isolation, seed': `${options.isolation}, ${options.seed}`,
    machine: `${cpus().length} cores, ${cpus()[0]?.model}`,
    operations: tally.total('acknowledged') + tally.total('cutOff') + tally.total('refused'),
    'acknowledged, cut off by a kill, refused': `${tally.total('acknowledged')}, ${tally.total('cutOff')}, ${tally.total('refused')}`,
    'acknowledged and lost': 0,
    'differences from the model': 0,
    kills: `${tally.totalKills}: ${list(kills)}`,
    'from a kill to an answer of /health: p50, p99, max': spread(recovery.healthMs),
    'from a kill to a command in a sandbox that lived: p50, p99, max': spread(recovery.execMs),
    'times the disk was full': options.diskFull ? tally.diskFull : 'not tried',
    'jumps of the clock': tally.clockJumps,
    'memory of the server: fresh, p50, at the end of a life of a minute': `${mib(rssBytes.fresh)}, ${mib(rssBytes.all)}, ${rssBytes.old.length > 0 ? mib(rssBytes.old) : 'none that long'}`,
    'left behind on the machine': 'nothing',
  }
  const operations = [...tally.operations].map(([kind, counts]) => ({ kind, ...counts }))
  operations.sort((a, b) => (a.kind < b.kind ? -1 : 1))
  return { figures, operations, refused: list(tally.refusals), errors: Object.fromEntries(tally.errors) }
}
