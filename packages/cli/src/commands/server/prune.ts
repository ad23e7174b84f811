import type { Pruned } from '@islet/sdk'
import type { Command } from 'commander'
import { duration } from '../../args/parse.ts'
import { command, type JsonFlag } from '../../command.ts'
import { confirm } from '../../confirm.ts'
import { connect } from '../../connect.ts'
import { formatBytes, formatSize } from '../../format.ts'
import { printJson, say } from '../../output.ts'
import { type Column, printTable } from '../../table.ts'

interface PruneFlags extends JsonFlag {
  checkpoints?: true
  olderThan?: number
  dryRun?: true
  yes?: true
}

interface Row {
  kind: string
  what: string
  sizeBytes: number | null
}

const COLUMNS: Column<Row>[] = [
  ['KIND', ({ kind }) => kind],
  ['SIZE', ({ sizeBytes }) => formatSize(sizeBytes)],
  ['WHAT', ({ what }) => what],
]

export function prune(): Command {
  return command(
    'prune',
    'Remove unused images and the records of removed sandboxes; with --checkpoints also their checkpoints.',
    'islet prune --dry-run\nislet prune --checkpoints --older-than 30d',
  )
    .option(
      '--checkpoints',
      'also remove checkpoints of removed sandboxes, unless a sandbox was made from them',
    )
    .option(
      '--older-than <duration>',
      'only records and checkpoints of at least this age, and packages unused for it, like 30d',
      duration,
    )
    .option('--dry-run', 'only print what would be removed')
    .option('-y, --yes', 'do not ask')
    .action(action)
}

async function action({ json, dryRun, yes, ...options }: PruneFlags): Promise<void> {
  const islet = connect()
  if (dryRun || !yes) {
    const found = await islet.prune({ ...options, dryRun: true })
    if (json && dryRun) return printJson(found)
    if (isNothing(found)) return json ? printJson(found) : say('There is nothing to remove.')
    if (!json) show(found)
    if (dryRun) return say(`About ${formatBytes(found.freedBytes)} would be freed. Nothing was removed.`)
    const question = `Remove all this, and free about ${formatBytes(found.freedBytes)}? [y/N]`
    const hint = 'islet prune --yes; islet prune --dry-run shows what it would remove.'
    if (!(await confirm(question, hint))) return say('Nothing was removed.')
  }
  const removed = await islet.prune(options)
  if (json) return printJson(removed)
  if (yes) show(removed)
  say(`About ${formatBytes(removed.freedBytes)} freed.`)
}

function isNothing({ images, checkpoints, sandboxes, freedBytes }: Pruned): boolean {
  return images.length + checkpoints.length + sandboxes.length + freedBytes === 0
}

function show({ images, checkpoints, sandboxes, freedBytes }: Pruned): void {
  const rows: Row[] = [
    ...images.map(({ name, sizeBytes }) => ({ kind: 'image', what: name, sizeBytes })),
    ...checkpoints.map(({ id, name, sandboxId, sizeBytes }) => {
      return { kind: 'checkpoint', what: `${id} ${name} (of ${sandboxId})`, sizeBytes }
    }),
    ...sandboxes.map((id) => ({ kind: 'record', what: id, sizeBytes: null })),
  ]
  const otherBytes = freedBytes - rows.reduce((sum, { sizeBytes }) => sum + (sizeBytes ?? 0), 0)
  if (rows.length === 0 && otherBytes > 0)
    rows.push({ kind: 'leftovers', what: 'of interrupted imports and sandboxes', sizeBytes: otherBytes })
  if (rows.length > 0) printTable(rows, COLUMNS)
}
