// How much there is of a disk, and how much of it may be written by one thing.
import { statfsSync } from 'node:fs'
import { statfs } from 'node:fs/promises'

const MIB = 1024 ** 2
/** What stays free on a disk for all else that the machine does, unless ISLET_DISK_RESERVE says otherwise. */
const RESERVE = { bytes: 2048 * MIB, share: 0.05 }
/** Of things that have a share of the disk. */
const LEAST_SHARE_BYTES = 1024 * MIB
const SPARE = { bytes: 256 * MIB, share: 0.05 }

/** The size of the disk of this directory. */
export function totalBytes(directory: string): number {
  const { blocks, bsize } = statfsSync(directory)
  return blocks * bsize
}

export function freeBytes(directory: string): number {
  const { bavail, bsize } = statfsSync(directory)
  return bavail * bsize
}

export function reserveBytes(directory: string, setting: number | 'auto' = 'auto'): number {
  if (setting !== 'auto') return setting
  return Math.floor(Math.min(RESERVE.bytes, totalBytes(directory) * RESERVE.share))
}

/** What all of one kind may take, unless its setting says otherwise. */
export function shareBytes(directory: string, setting: number | 'auto', share: number): number {
  return setting === 'auto' ? Math.max(totalBytes(directory) * share, LEAST_SHARE_BYTES) : setting
}

/** What one thing may still write, of the fullest of these disks: some is left for the sandboxes that run meanwhile. */
export async function spareBytes(directories: readonly string[]): Promise<number> {
  const stats = await Promise.all(directories.map((directory) => statfs(directory)))
  const spare = stats.map(({ bavail, blocks, bsize }) => {
    return bavail * bsize - Math.min(SPARE.bytes, blocks * bsize * SPARE.share)
  })
  return Math.min(...spare)
}
