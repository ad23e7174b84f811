// How much there is of a disk, and how much of it may be written by one thing.
import { statfsSync } from 'node:fs'
import { statfs } from 'node:fs/promises'

/** Left for the sandboxes that run meanwhile, and for the server's own records, without which nothing works. */
const RESERVE = { bytes: 256 * 1024 * 1024, share: 0.05 }

/** The size of the smallest of these disks; a pool may be a sparse file, larger than the disk it is on. */
export function totalBytes(directories: readonly string[]): number {
  const stats = directories.map((directory) => statfsSync(directory))
  return Math.min(...stats.map(({ blocks, bsize }) => blocks * bsize))
}

/** Of the fullest of these disks; a pool may be a sparse file on another one. */
export async function spareBytes(directories: readonly string[]): Promise<number> {
  const stats = await Promise.all(directories.map((directory) => statfs(directory)))
  const spare = stats.map(({ bavail, blocks, bsize }) => {
    return bavail * bsize - Math.min(RESERVE.bytes, blocks * bsize * RESERVE.share)
  })
  return Math.min(...spare)
}
