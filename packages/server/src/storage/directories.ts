import { execFile } from 'node:child_process'
import { lstat, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'

/** All that was written to the filesystem of this directory survives a power cut. Node has no syncfs(2). */
export async function syncFilesystem(directory: string): Promise<void> {
  await promisify(execFile)('sync', ['--file-system', directory])
}

/** The disk space of all below a directory, without following symlinks; what vanishes meanwhile counts nothing. */
export async function directoryBytes(directory: string): Promise<number> {
  let bytes = 0
  const entries = await readdir(directory, { withFileTypes: true }).catch(() => [])
  for (const entry of entries) {
    const path = join(directory, entry.name)
    const stat = await lstat(path).catch(() => undefined)
    bytes += (stat?.blocks ?? 0) * 512
    if (entry.isDirectory()) bytes += await directoryBytes(path)
  }
  return bytes
}
