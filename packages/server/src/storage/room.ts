// How much of a disk may be written by one thing.
import { statfs } from 'node:fs/promises'

/** Left for the sandboxes that run meanwhile, and for the server's own records, without which nothing works. */
const RESERVE = { bytes: 256 * 1024 * 1024, share: 0.05 }

/** Of the fullest of these disks; a pool may be a sparse file on another one. */
export async function spareBytes(directories: readonly string[]): Promise<number> {
  const stats = await Promise.all(directories.map((directory) => statfs(directory)))
  const spare = stats.map(({ bavail, blocks, bsize }) => {
    return bavail * bsize - Math.min(RESERVE.bytes, blocks * bsize * RESERVE.share)
  })
  return Math.min(...spare)
}
