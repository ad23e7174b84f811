// Sizes of disks, and how much of a disk each part of the server may use.
import { statfsSync } from 'node:fs'
import { statfs } from 'node:fs/promises'

const MIB = 1024 ** 2
/** Default of ISLET_DISK_RESERVE, which stays free for the rest of the machine: the smaller of these. */
const RESERVE = { bytes: 2048 * MIB, share: 0.05 }
/** The least that a share of the disk gives. */
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

/** The limit for all data of one kind: its setting, or a share of the disk. */
export function shareBytes(directory: string, setting: number | 'auto', share: number): number {
  return setting === 'auto' ? Math.max(totalBytes(directory) * share, LEAST_SHARE_BYTES) : setting
}

/** How much one import or save may write to the fullest of these disks; some room is left for running sandboxes. */
export async function spareBytes(directories: readonly string[]): Promise<number> {
  const stats = await Promise.all(directories.map((directory) => statfs(directory)))
  const spare = stats.map(({ bavail, blocks, bsize }) => {
    return bavail * bsize - Math.min(SPARE.bytes, blocks * bsize * SPARE.share)
  })
  return Math.min(...spare)
}
