import { createReadStream } from 'node:fs'
import type { ImageInfo } from '@islet/sdk'
import type { Command } from 'commander'
import { removeEach } from '../../args/each.ts'
import { command, group, type JsonFlag } from '../../command.ts'
import { connect } from '../../connect.ts'
import { statLocal, tarOf } from '../../copy/upload.ts'
import { formatAge, formatBytes } from '../../format.ts'
import { printResult, say } from '../../output.ts'
import { showImageSteps } from '../../progress.ts'
import { type Column, printList } from '../../table.ts'

const columns: Column<ImageInfo>[] = [
  ['IMAGE', ({ name }) => name],
  ['RUNTIMES', ({ runtimes }) => runtimes.join(' ') || '-'],
  ['SOURCE', ({ source }) => sourceText(source)],
  ['SIZE', ({ sizeBytes }) => formatBytes(sizeBytes)],
  ['AGE', ({ createdAt }) => formatAge(createdAt)],
]

export function image(): Command {
  return group(
    'image',
    'Manage the images that sandboxes run on.',
    'islet image pull python:3.13-slim --name python',
    [ls(), pull(), build(), importImage(), rm(), collect()],
  )
}

function ls(): Command {
  return command('ls', 'List the images on the server.', 'islet image ls')
    .alias('list')
    .action(async (flags: JsonFlag) => {
      const none = 'There are no images. islet image build base builds one.'
      printList(await connect().images.list(), flags, { columns, none })
    })
}

function pull(): Command {
  return command(
    'pull',
    'Pull an image from a registry, or make a runtime of packages anew.',
    'islet image pull python:3.13-slim --name python',
  )
    .argument('<reference>', 'like python:3.13-slim or ghcr.io/me/app@sha256:...')
    .option('--name <name>', 'runtime name of the image; default: the reference')
    .option('--insecure', 'allow a registry without TLS')
    .action(async (reference: string, flags: JsonFlag & { name?: string; insecure?: true }) => {
      const options = { name: flags.name, insecure: flags.insecure, onProgress: showImageSteps() }
      const image = await connect().images.pull(reference, options)
      printResult(image, image.name, flags)
    })
}

function build(): Command {
  return command(
    'build',
    'Build the full Debian base image (python, node, git and more), or a runtime of packages.',
    'islet image build base\nislet image build bun:1',
  )
    .argument('<runtime>', 'base, or a runtime of packages, like bun:1 or node:22')
    .action(async (runtime: string, flags: JsonFlag) => {
      const image = await connect().images.build(runtime, { onProgress: showImageSteps() })
      printResult(image, image.name, flags)
    })
}

function importImage(): Command {
  return command(
    'import',
    'Create an image from a local directory or tar file.',
    'islet image import ./rootfs.tar.zst --name mine',
  )
    .argument('<path>', 'a directory, or a tar file (plain, gzip, xz or zstd)')
    .requiredOption('--name <name>', 'runtime name of the image')
    .action(async (path: string, flags: JsonFlag & { name: string }) => {
      const isDirectory = (await statLocal(path)).isDirectory()
      const tar = isDirectory ? tarOf(path, ['--numeric-owner', '--xattrs']) : createReadStream(path)
      const image = await connect().images.upload(flags.name, tar, { onProgress: showImageSteps() })
      printResult(image, image.name, flags)
    })
}

function rm(): Command {
  return command(
    'rm',
    'Remove a runtime name, and its image if no other name uses it.',
    'islet image rm python',
  )
    .argument('<runtime...>', 'runtime names or images')
    .action(async (names: string[], flags: JsonFlag) => {
      const { images } = connect()
      await removeEach(names, flags, (name) => images.remove(name))
    })
}

function collect(): Command {
  return command('collect', 'Remove images that nothing names or uses.', 'islet image collect').action(
    async (flags: JsonFlag) => {
      const result = await connect().images.collect()
      printResult(result, result.removed, flags)
      if (!flags.json) say(`${result.removed.length} removed, ${formatBytes(result.freedBytes)} freed.`)
    },
  )
}

function sourceText(source: ImageInfo['source']): string {
  if (source.kind === 'oci') return source.reference
  if (source.kind === 'debian') return `debian ${source.suite}`
  if (source.kind === 'packages')
    return `${source.base} + ${[...source.dependencies, ...source.packages, ...source.pip].join(' ')}`
  return source.kind === 'host' ? 'host' : source.path
}
