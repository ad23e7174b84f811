// The pool holds all layers: <data>/pool. If the data directory is not on btrfs, the pool is a btrfs in the file <data>/pool.img,
// which is mounted there and grows with its content (elastic.ts). If that cannot be made, the pool is a plain directory, and layers
// are copied instead of snapshotted.
//
// A kill -9 may come after every step, so openPool() goes on from what it finds:
//   pool.img.tmp             mkfs was cut short             removed
//   pool.img, no loop        closed properly                attached and mounted
//   pool.img on a loop       cut before the mount           that loop device is mounted
//   pool mounted             the last server was killed     taken over as it is
//   pool mounted read-only   the disk below failed          all its users are ended, and it is mounted again
import { chmod, mkdir, realpath, stat, statfs } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { IsletError } from '@islet/contract'
import { exists } from '../lib/exists.ts'
import { listMounts, type Mount } from '../lib/mounts.ts'
import { Elastic } from './elastic.ts'
import { attach, isAttached, keepBlocks, loopOf, MIB, makeImage, run } from './pool-image.ts'
import { freeBytes, reserveBytes } from './room.ts'

export type PoolMethod = 'auto' | 'btrfs' | 'reflink' | 'copy'

interface PoolOptions {
  dataDir: string
  /** The most the pool file can grow to; it starts small. */
  sizeBytes?: number
  /** Bytes that stay free on the disk of the data directory. */
  reserveBytes?: number
  /** `auto`: a btrfs pool when possible. `btrfs`: that or an error. `reflink`, `copy`: a plain directory. */
  method?: PoolMethod
  /** Ends all processes that may use the pool: only then can it be mounted again. */
  endUsers?: () => Promise<void>
  log?: (line: string) => void
}

export interface Pool {
  /** The directory that holds layers/. */
  dir: string
  /** The method to start the warden with. */
  method: PoolMethod
  /** Whether `dir` is the mounted filesystem of the pool file. */
  mounted: boolean
  /** Only if `mounted`. */
  elastic: Elastic | undefined
  limitBytes: number
  /** Unmounts and detaches the pool; close the warden before. Calling it twice is fine. */
  close(): Promise<void>
}

const DEFAULT_SIZE = 64 * 1024 * MIB
/** The first size. mkfs.btrfs accepts it, and the pool grows as soon as it is mounted, so the start stays short. */
const MIN_SIZE = 256 * MIB
const BTRFS_MAGIC = 0x9123683e
/**
 * `noatime`: atime updates would rewrite the metadata of many small snapshots. `nodiscard`: freed blocks stay reserved. `nosuid`:
 * the roots of sandboxes are other mounts, in which set-user-id works.
 */
const MOUNT_OPTIONS = 'noatime,nodev,nosuid,nodiscard'

export async function openPool(options: PoolOptions): Promise<Pool> {
  const { dataDir, log } = options
  const method = options.method ?? 'auto'
  await mkdir(join(dataDir, 'pool'), { recursive: true, mode: 0o700 })
  const dir = await realpath(join(dataDir, 'pool')) // as mountinfo spells it
  const image = join(dirname(dir), 'pool.img')
  const limitBytes = Math.max(options.sizeBytes ?? DEFAULT_SIZE, MIN_SIZE)
  if (method === 'reflink' || method === 'copy') return plainPool(dir, method)
  if (!(await exists(image)) && (await isBtrfs(dir))) return plainPool(dir, 'btrfs')
  try {
    const device = (await usableMount(dir, options)) ?? (await mountImage(image, dir, options))
    await keepBlocks(device)
    // The root of the mounted filesystem has its own mode. Only root may enter it: layers hold setuid files with real ids.
    await closeToOthers(dir)
    const reserved = options.reserveBytes ?? reserveBytes(dataDir)
    const elastic = await Elastic.open({
      image,
      dir,
      loop: device,
      limitBytes,
      reserveBytes: reserved,
      log,
    })
    return mountedPool(dir, elastic, limitBytes)
  } catch (error) {
    if (method === 'btrfs' || (await exists(image))) throw error
    const reason = (error as Error).message.trim().split('\n').at(-1)
    log?.(
      `no btrfs pool (${reason}): layers are plain directories, checkpoints copy files, disk limits are off`,
    )
    return plainPool(dir, 'auto')
  }
}

async function plainPool(dir: string, method: PoolMethod): Promise<Pool> {
  await closeToOthers(dir)
  const limitBytes = Number.POSITIVE_INFINITY
  return { dir, method, mounted: false, elastic: undefined, limitBytes, close: async () => {} }
}

/** Only if needed: on a full filesystem chmod fails. */
async function closeToOthers(dir: string): Promise<void> {
  if (((await stat(dir)).mode & 0o777) !== 0o700) await chmod(dir, 0o700)
}

function mountedPool(dir: string, elastic: Elastic, limitBytes: number): Pool {
  const close = async () => {
    await elastic.close()
    await unmount(dir)
  }
  return { dir, method: 'btrfs', mounted: true, elastic, limitBytes, close }
}

async function unmount(dir: string): Promise<void> {
  const mount = await mountOf(dir)
  if (mount === undefined) return
  await retry(() => run('umount', [dir]))
  // umount frees the loop device, but only when nothing holds the filesystem any more.
  if (await isAttached(mount.device)) await run('losetup', ['--detach', mount.device])
}

/** The device of a writable mount that an earlier server left; undefined if there is none. */
async function usableMount(dir: string, { log, endUsers }: PoolOptions): Promise<string | undefined> {
  const mount = await mountOf(dir)
  if (!mount) return undefined
  if (!mount.isReadOnly) {
    await run('mount', ['-o', `remount,${MOUNT_OPTIONS}`, dir])
    return mount.device
  }
  log?.(`${dir} has become read-only: its sandboxes are ended and start again from their files`)
  await endUsers?.()
  await unmount(dir)
  return undefined
}

async function mountImage(image: string, dir: string, options: PoolOptions): Promise<string> {
  await makeImage(image, () => firstBytes(options))
  const device = (await loopOf(image)) ?? (await attach(image))
  try {
    await run('mount', ['-t', 'btrfs', '-o', MOUNT_OPTIONS, device, dir])
    return device
  } catch (error) {
    await run('losetup', ['--detach', device]).catch(() => {})
    throw error
  }
}

function firstBytes({ dataDir }: PoolOptions): number {
  const free = freeBytes(dataDir)
  if (free >= MIN_SIZE) return MIN_SIZE
  throw new IsletError(
    'server_disk_full',
    `The disk of ${dataDir} has ${Math.floor(free / MIB)} MiB left; a pool needs at least ${MIN_SIZE / MIB} MiB.`,
    { hint: 'Make room there, or set ISLET_DATA_DIR to a directory on another disk.' },
  )
}

/** The topmost mount at exactly `dir`, if there is one. */
async function mountOf(dir: string): Promise<Mount | undefined> {
  return (await listMounts()).findLast((mount) => mount.at === dir)
}

async function isBtrfs(dir: string): Promise<boolean> {
  return (await statfs(dir)).type === BTRFS_MAGIC
}

/** A filesystem stays busy for a moment after its last user has ended. */
async function retry<Result>(action: () => Promise<Result>): Promise<Result> {
  for (let attempt = 0; ; attempt++) {
    try {
      return await action()
    } catch (error) {
      if (attempt === 20) throw error
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  }
}
