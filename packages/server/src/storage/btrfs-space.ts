// The live figures of a mounted btrfs in sysfs. Unlike statfs they include room that is reserved for data not yet on disk.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'

const SYSFS = '/sys/fs/btrfs'
/** At the start of a device, before the first chunk. */
const UNUSED_BYTES = 1024 ** 2

export interface BtrfsSpace {
  /** The sum of all chunks; the rest of the device is not allocated. */
  chunkBytes: number
  /** Free in existing data chunks. */
  freeDataBytes: number
  freeMetadataBytes: number
  metadataBytes: number
}

/** The sysfs directory of the filesystem on a device. */
export function btrfsDirectory(device: string): string | undefined {
  const directories = readdirSync(SYSFS).map((name) => join(SYSFS, name))
  return directories.find((directory) => existsSync(join(directory, 'devices', basename(device))))
}

export function btrfsSpace(directory: string): BtrfsSpace {
  const of = (kind: string, file: string) => number(join(directory, 'allocation', kind, file))
  // Pinned bytes count as free: the kernel commits, and so frees them, when they are needed.
  const free = (kind: string) =>
    of(kind, 'total_bytes') -
    of(kind, 'bytes_used') -
    of(kind, 'bytes_may_use') -
    of(kind, 'bytes_reserved') -
    of(kind, 'bytes_readonly')
  const chunks = ['data', 'metadata', 'system'].map((kind) => of(kind, 'disk_total'))
  return {
    chunkBytes: chunks.reduce((sum, bytes) => sum + bytes, UNUSED_BYTES),
    freeDataBytes: Math.max(free('data'), 0),
    freeMetadataBytes: Math.max(free('metadata'), 0),
    metadataBytes: of('metadata', 'total_bytes'),
  }
}

/** The size of a subvolume with pending writes; undefined without quota groups. */
export function subvolumeBytes(directory: string, id: number): number | undefined {
  const group = join(directory, 'qgroups', `0_${id}`)
  try {
    return number(join(group, 'referenced')) + number(join(group, 'rsv_data'))
  } catch {
    return undefined
  }
}

function number(path: string): number {
  return Number(readFileSync(path, 'utf8'))
}
