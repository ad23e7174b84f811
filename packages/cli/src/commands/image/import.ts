import { stat } from 'node:fs/promises'
import { resolve } from 'node:path'
import type { Command } from 'commander'
import { command, type JsonFlag } from '../../command.ts'
import { connect } from '../../connect.ts'
import { reportImage, StepLine } from '../../image-progress.ts'

export function importImage(): Command {
  return command(
    'import',
    "Make an image from a directory or tar of the server's machine.",
    'islet image import ./rootfs.tar.zst --name mine',
  )
    .argument('<path>', "on the server's machine; a directory, or a tar (plain, gzip, xz or zstd)")
    .requiredOption('--name <name>', 'the runtime name it gets')
    .action(async (text: string, flags: JsonFlag & { name: string }) => {
      const path = resolve(text)
      const kind = await kindOf(path)
      using line = new StepLine()
      const image = await connect().images.import({ kind, path, name: flags.name }, { onProgress: line.show })
      reportImage(image, flags)
    })
}

/** The server may be another machine: what is not here is taken for a tar if it is named like one. */
async function kindOf(path: string): Promise<'directory' | 'tar'> {
  const found = await stat(path).catch(() => undefined)
  if (found) return found.isDirectory() ? 'directory' : 'tar'
  return /\.(tar|tgz|txz|tzst|gz|xz|zst)$/.test(path) ? 'tar' : 'directory'
}
