import { execFile } from 'node:child_process'
import { lstat, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'

/** All earlier writes to the filesystem of this directory survive a power cut. Node has no syncfs(2). */
export async function syncFilesystem(directory: string): Promise<void> {
  await promisify(execFile)('sync', ['--file-system', directory])
}

/** The disk space below a directory, without following symlinks. Files that vanish meanwhile are not counted. */
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
