import type { ImageInfo } from '@islet/sdk'
import type { Command } from 'commander'
import { command, type JsonFlag } from '../../command.ts'
import { connect } from '../../connect.ts'
import { formatAge, formatBytes } from '../../format.ts'
import { printJson, say } from '../../output.ts'
import { type Column, printTable } from '../../table.ts'

const COLUMNS: Column<ImageInfo>[] = [
  ['IMAGE', ({ name }) => name],
  ['RUNTIMES', ({ runtimes }) => runtimes.join(' ') || '-'],
  ['SOURCE', ({ source }) => sourceText(source)],
  ['SIZE', ({ sizeBytes }) => formatBytes(sizeBytes)],
  ['AGE', ({ createdAt }) => formatAge(createdAt)],
]

export function ls(): Command {
  return command('ls', 'List the images on the server.', 'islet image ls')
    .alias('list')
    .action(async (flags: JsonFlag) => {
      const found = await connect().images.list()
      if (flags.json) return printJson(found)
      if (found.length === 0) return say('There are no images. islet image build base makes one.')
      printTable(found, COLUMNS)
    })
}

function sourceText(source: ImageInfo['source']): string {
  if (source.kind === 'oci') return source.reference
  if (source.kind === 'debian') return `debian ${source.suite}`
  return source.kind === 'host' ? 'host' : source.path
}
