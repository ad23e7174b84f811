import type { Sandbox } from '@islet/sdk'
import { baseName } from './location.ts'
import { Progress } from './progress.ts'
import { targetIn } from './upload.ts'

/** From one sandbox to another, or to another place in the same one, through this machine and not onto its disk. */
export async function copyBetween(
  from: Sandbox,
  source: string,
  to: Sandbox,
  remote: string,
): Promise<string> {
  const { path, type, mode, sizeBytes } = await from.files.stat(source)
  const target = await targetIn(to, remote, baseName(path))
  using progress = new Progress(source, type === 'directory' ? undefined : sizeBytes)
  if (type === 'directory') {
    await to.files.makeDir(target)
    await to.files.writeArchive(target, progress.count(await from.files.readArchive(path, { gzip: false })))
  } else await to.files.write(target, progress.count(await from.files.readStream(path)), { mode })
  return target
}
