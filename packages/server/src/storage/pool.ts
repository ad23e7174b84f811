// Where layers live: <data>/pool. When the data directory is not on btrfs, that is a sparse btrfs file <data>/pool.img
// mounted there; when it cannot be made, a plain directory, and layers are copied instead of snapshotted.
//
// Every step may have been the last one before a kill -9, so open() looks at what is there and goes on from it:
//   pool.img.tmp             mkfs was cut short             removed
//   pool.img, no loop        closed properly                attached and mounted
//   pool.img on a loop       cut before the mount           that loop device is mounted
//   pool mounted             the last server was killed     taken over as it is
import { execFile } from 'node:child_process'
import {
  chmod,
  mkdir,
  open as openFile,
  readFile,
  realpath,
  rename,
  rm,
  stat,
  statfs,
} from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)

export type PoolMethod = 'auto' | 'btrfs' | 'reflink' | 'copy'

export interface PoolOptions {
  dataDir: string
  /** The most the pool file can grow to; it is sparse and starts at a few megabytes. */
  sizeBytes?: number
  /** `auto`: a btrfs pool when possible. `btrfs`: that or an error. `reflink`, `copy`: a plain directory. */
  method?: PoolMethod
  log?: (line: string) => void
}

export interface Pool {
  /** The directory that holds layers/. */
  dir: string
  /** What to start the warden with. */
  method: PoolMethod
  /** Whether `dir` is a filesystem of its own, kept in a file. */
  mounted: boolean
  /** Unmounts and detaches what open() mounted or took over; the warden must be closed before. Twice is fine. */
  close(): Promise<void>
}

const DEFAULT_SIZE = 64 * 1024 ** 3
const MIN_SIZE = 256 * 1024 ** 2
const BTRFS_MAGIC = 0x9123683e
// Snapshots are many and small; atime updates would rewrite their metadata for nothing.
const MOUNT_OPTIONS = 'noatime,nodev,discard=async'

export async function openPool(options: PoolOptions): Promise<Pool> {
  const method = options.method ?? 'auto'
  await mkdir(join(options.dataDir, 'pool'), { recursive: true, mode: 0o700 })
  const dir = await realpath(join(options.dataDir, 'pool')) // as mountinfo spells it
  await chmod(dir, 0o700)
  if (method === 'reflink' || method === 'copy') return plainPool(dir, method)
  const image = join(options.dataDir, 'pool.img')
  if (await isMounted(dir)) return closedPool(dir)
  if (!(await exists(image)) && (await isBtrfs(dir))) return plainPool(dir, 'btrfs')
  try {
    await makeImage(image, options.sizeBytes ?? DEFAULT_SIZE)
    await mountImage(image, dir)
    return closedPool(dir)
  } catch (error) {
    if (method === 'btrfs' || (await exists(image))) throw error
    const reason = (error as Error).message.trim().split('\n').at(-1)
    options.log?.(
      `no btrfs pool (${reason}): layers are plain directories, checkpoints copy files, disk limits are off`,
    )
    return plainPool(dir, 'auto')
  }
}

function plainPool(dir: string, method: PoolMethod): Pool {
  return { dir, method, mounted: false, close: async () => {} }
}

/** The root of the mounted filesystem has a mode of its own. Layers hold setuid files with real ids: only root may get in. */
async function closedPool(dir: string): Promise<Pool> {
  await chmod(dir, 0o700)
  return mountedPool(dir)
}

function mountedPool(dir: string): Pool {
  const close = async () => {
    const loop = await isMounted(dir)
    if (loop === undefined) return
    await retry(() => run('umount', [dir]))
    // umount frees a loop device by itself, but only once nobody holds the filesystem any more.
    if (await isAttached(loop)) await run('losetup', ['--detach', loop])
  }
  return { dir, method: 'btrfs', mounted: true, close }
}

async function makeImage(image: string, sizeBytes: number): Promise<void> {
  const temporary = `${image}.tmp`
  await rm(temporary, { force: true })
  if (await exists(image)) return
  const file = await openFile(temporary, 'wx', 0o600)
  try {
    await file.truncate(Math.max(sizeBytes, MIN_SIZE))
    // Metadata once: the file lies on a filesystem that looks after its own blocks.
    await run('mkfs.btrfs', ['--quiet', '--metadata', 'single', '--label', 'islet', temporary])
    await file.sync()
    await rename(temporary, image)
  } catch (error) {
    await rm(temporary, { force: true })
    throw error
  } finally {
    await file.close()
  }
}

async function mountImage(image: string, dir: string): Promise<void> {
  const loop = (await loopOf(image)) ?? (await attach(image))
  try {
    await run('mount', ['-t', 'btrfs', '-o', MOUNT_OPTIONS, loop, dir])
  } catch (error) {
    await run('losetup', ['--detach', loop]).catch(() => {})
    throw error
  }
}

async function attach(image: string): Promise<string> {
  const { stdout } = await run('losetup', ['--find', '--show', '--nooverlap', image])
  const loop = stdout.trim()
  // Where the disk can: else what sandboxes write is in memory twice, and is copied once more.
  await run('losetup', ['--direct-io=on', loop]).catch(() => {})
  return loop
}

async function loopOf(image: string): Promise<string | undefined> {
  const { stdout } = await run('losetup', ['--associated', image, '--noheadings', '--output', 'NAME'])
  return stdout.trim().split('\n')[0] || undefined
}

async function isAttached(loop: string): Promise<boolean> {
  if (!loop.startsWith('/dev/loop')) return false
  const { stdout } = await run('losetup', ['--list', '--noheadings', '--output', 'NAME'])
  return stdout.split('\n').some((name) => name.trim() === loop)
}

/** The device mounted right at `dir`, if any. */
async function isMounted(dir: string): Promise<string | undefined> {
  for (const line of (await readFile('/proc/self/mountinfo', 'utf8')).split('\n').reverse()) {
    const [before, after] = line.split(' - ')
    if (after && unescapeOctal(before!.split(' ')[4]!) === dir) return unescapeOctal(after.split(' ')[1]!)
  }
  return undefined
}

function unescapeOctal(text: string): string {
  return text.replace(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)))
}

async function isBtrfs(dir: string): Promise<boolean> {
  return (await statfs(dir)).type === BTRFS_MAGIC
}

async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  )
}

/** A filesystem stays busy for a moment after the last process that used it has ended. */
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
