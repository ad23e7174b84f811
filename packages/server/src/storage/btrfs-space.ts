// What a mounted btrfs says of itself in sysfs: live, with what is promised to writers and not on disk yet, which statfs leaves out.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'

const SYSFS = '/sys/fs/btrfs'
/** Before the first chunk of a device. */
const UNUSED_BYTES = 1024 ** 2

export interface BtrfsSpace {
  /** All that is taken by chunks; the rest of the device is anybody's. */
  chunkBytes: number
  /** In chunks that are there. */
  freeDataBytes: number
  freeMetadataBytes: number
  metadataBytes: number
}

/** The directory of the filesystem on a device. */
export function btrfsDirectory(device: string): string | undefined {
  const directories = readdirSync(SYSFS).map((name) => join(SYSFS, name))
  return directories.find((directory) => existsSync(join(directory, 'devices', basename(device))))
}

export function btrfsSpace(directory: string): BtrfsSpace {
  const of = (kind: string, file: string) => number(join(directory, 'allocation', kind, file))
  // What is pinned is free once the kernel commits, which it does when somebody needs it.
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

/** What a subvolume holds, with what is about to be written to it; undefined where nothing counts that. */
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
