import { createReadStream } from 'node:fs'
import type { Command } from 'commander'
import { command, type JsonFlag } from '../../command.ts'
import { connect } from '../../connect.ts'
import { statLocal, tarOf } from '../../copy/upload.ts'
import { reportImage, StepLine } from '../../image-progress.ts'

export function importImage(): Command {
  return command(
    'import',
    'Make an image from a directory or tar of this machine.',
    'islet image import ./rootfs.tar.zst --name mine',
  )
    .argument('<path>', 'a directory, or a tar (plain, gzip, xz or zstd)')
    .requiredOption('--name <name>', 'the runtime name it gets')
    .action(async (path: string, flags: JsonFlag & { name: string }) => {
      const isDirectory = (await statLocal(path)).isDirectory()
      const tar = isDirectory ? tarOf(path, ['--numeric-owner', '--xattrs']) : createReadStream(path)
      using line = new StepLine()
      reportImage(await connect().images.upload(flags.name, tar, { onProgress: line.show }), flags)
    })
}
