import type { Sandbox } from '@islet/sdk'
import { withProgress } from '../progress.ts'
import { baseName } from './location.ts'
import { targetIn } from './upload.ts'

/** Copies between sandboxes, or inside one. The bytes pass through this process, not through the local disk. */
export async function copyBetween(
  from: Sandbox,
  source: string,
  to: Sandbox,
  remote: string,
): Promise<string> {
  const { path, type, mode, sizeBytes } = await from.files.stat(source)
  const target = await targetIn(to, remote, baseName(path))
  if (type === 'directory') {
    await to.files.makeDir(target)
    const archive = await from.files.readArchive(path, { gzip: false })
    await to.files.writeArchive(target, withProgress(archive, source))
  } else {
    const content = await from.files.readStream(path)
    await to.files.write(target, withProgress(content, source, sizeBytes), { mode })
  }
  return target
}
