// A pool that grows in steps before its content needs the room, up to its limit or what the machine's disk can spare. All its blocks
// are reserved, so that the filesystem in it never meets a full disk below.
//
// A step is: reserve a longer file, lengthen the loop device, resize the filesystem. After a kill -9 between any of these, `settle`
// goes on.
import { accessSync, constants, statfsSync, statSync } from 'node:fs'
import { truncate } from 'node:fs/promises'
import { dirname } from 'node:path'
import { type BtrfsSpace, btrfsDirectory, btrfsSpace, subvolumeBytes } from './btrfs-space.ts'
import { followFile, holeBytes, loopBytes, MIB, reserve, run } from './pool-image.ts'
import { freeBytes } from './room.ts'
import type { Room } from './storage.ts'

/** How often free room is checked. A fast disk fills less than HEADROOM in this time plus one step. */
const LOOK_MS = 100
/** It grows when less than this is free. */
const HEADROOM = 1024 * MIB
/** The same for metadata: names and attributes of files. */
const METADATA_HEADROOM = 64 * MIB
/**
 * After this many data chunks the filesystem allocates a metadata chunk. Otherwise data could take all chunks, and then no file
 * could be written or removed. The first metadata chunk is allocated at once.
 */
const DATA_CHUNKS = { first: 1, later: 8 }
/** The share of the pool that metadata has after its first chunk. */
const METADATA_SHARE = 1 / 16
const STEP = 1024 * MIB
/** The smallest step. */
const LEAST_STEP = 16 * MIB
const READ_ONLY =
  'The pool has become read-only, because the disk below it failed. A new start mounts it again, and sandboxes start over their files.'
/** Delay before a failed step is retried. */
const RETRY_MS = 5000

interface ElasticOptions {
  image: string
  /** The mount point. */
  dir: string
  loop: string
  limitBytes: number
  /** Bytes that stay free on the machine's disk. */
  reserveBytes: number
  log?: (line: string) => void
}

export class Elastic {
  readonly #options: ElasticOptions
  readonly #sysfs: string
  #timer: NodeJS.Timeout | undefined
  #sizeBytes = 0
  #work: Promise<unknown> = Promise.resolve()
  #isBusy = false
  #retryAt = 0
  #ratio = 0
  readonly #broken = Promise.withResolvers<string>()
  readonly #ids = new Map<string, number>()

  private constructor(options: ElasticOptions, sysfs: string) {
    this.#options = options
    this.#sysfs = sysfs
  }

  /** The pool must be mounted. */
  static async open(options: ElasticOptions): Promise<Elastic> {
    const sysfs = btrfsDirectory(options.loop)
    if (sysfs === undefined) throw new Error(`${options.loop} has no mounted btrfs`)
    const elastic = new Elastic(options, sysfs)
    await elastic.#settle()
    await elastic.#setRatio()
    elastic.#timer = setInterval(() => elastic.#look(), LOOK_MS).unref()
    return elastic
  }

  /** Resolves with the reason when the filesystem has become read-only and has to be mounted again. */
  get broken(): Promise<string> {
    return this.#broken.promise
  }

  room(): Room {
    const { chunkBytes, freeDataBytes, freeMetadataBytes } = btrfsSpace(this.#sysfs)
    const rest = Math.max(this.#sizeBytes - chunkBytes, 0)
    // Without room for metadata no file can be written.
    const free = Math.min(rest + freeDataBytes, (rest + freeMetadataBytes) * (HEADROOM / METADATA_HEADROOM))
    return { freeBytes: free, moreBytes: this.#moreBytes() }
  }

  /** The live size of each layer. Layers that the filesystem does not count are left out. */
  async layerBytes(layers: readonly string[]): Promise<Map<string, number>> {
    if (layers.some((layer) => !this.#ids.has(layer))) await this.#readIds()
    const found = layers.map((layer) => {
      const id = this.#ids.get(layer)
      return [layer, id === undefined ? undefined : subvolumeBytes(this.#sysfs, id)] as const
    })
    return new Map(found.filter((entry): entry is [string, number] => entry[1] !== undefined))
  }

  /** Gives free room back to the machine, except for some headroom. */
  shrink(): Promise<void> {
    return this.#alone(async () => {
      const target = this.#neededBytes()
      if (this.#sizeBytes - target >= LEAST_STEP) await this.#shrinkTo(target)
    })
  }

  async close(): Promise<void> {
    clearInterval(this.#timer)
    await this.#work
  }

  #look(): void {
    try {
      accessSync(this.#options.dir, constants.W_OK)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'EROFS') this.#broken.resolve(READ_ONLY)
    }
    if (this.#isBusy || performance.now() < this.#retryAt) return
    if (this.#ratio === DATA_CHUNKS.first) this.#alone(() => this.#setRatio()).catch(() => {})
    if (!this.#isShort()) return
    this.#alone(() => this.#grow(Math.max(STEP, this.#sizeBytes / 8))).catch((error) => {
      this.#retryAt = performance.now() + RETRY_MS
      this.#options.log?.(`the pool did not grow (${lastLine(error)}); it is retried in ${RETRY_MS / 1000} s`)
    })
  }

  async #setRatio(): Promise<void> {
    const hasFirst = btrfsSpace(this.#sysfs).metadataBytes >= this.#sizeBytes * METADATA_SHARE
    const ratio = hasFirst ? DATA_CHUNKS.later : DATA_CHUNKS.first
    if (ratio === this.#ratio) return
    await run('mount', ['-o', `remount,metadata_ratio=${ratio}`, this.#options.dir])
    this.#ratio = ratio
  }

  #isShort(): boolean {
    try {
      const { freeBytes, moreBytes } = this.room()
      return freeBytes < HEADROOM && moreBytes > 0
    } catch {
      return false // It was unmounted from outside.
    }
  }

  /** 0: it cannot grow. */
  #moreBytes(): number {
    const { image, limitBytes, reserveBytes } = this.#options
    const more = Math.min(limitBytes - this.#sizeBytes, freeBytes(dirname(image)) - reserveBytes)
    return more >= LEAST_STEP ? more : 0
  }

  async #grow(byBytes: number): Promise<void> {
    const more = Math.min(byBytes, this.#moreBytes())
    if (more === 0) return
    await reserve(this.#options.image, wholeMib(this.#sizeBytes + more))
    await this.#follow()
  }

  /** Makes device and filesystem as long as the file. */
  async #follow(): Promise<void> {
    const { image, loop, dir } = this.#options
    const { size } = statSync(image)
    if ((await loopBytes(loop)) !== size) await followFile(loop)
    const { blocks, bsize } = statfsSync(dir)
    if (blocks * bsize < size) await run('btrfs', ['filesystem', 'resize', 'max', dir])
    this.#sizeBytes = size
  }

  async #shrinkTo(bytes: number): Promise<void> {
    const { image, loop, dir } = this.#options
    await run('btrfs', ['filesystem', 'resize', String(bytes), dir])
    await truncate(image, bytes)
    await followFile(loop)
    this.#sizeBytes = bytes
  }

  /** Finishes what an earlier server left: a cut-off step, or a file whose blocks are not all reserved. */
  async #settle(): Promise<void> {
    const { image, reserveBytes, log } = this.#options
    await this.#follow()
    const holes = await holeBytes(image)
    if (holes === 0) return
    const target = this.#neededBytes()
    try {
      if (target < this.#sizeBytes) {
        // Reserved first, because the resize writes.
        await reserve(image, target)
        await this.#shrinkTo(target)
      } else if (holes > freeBytes(dirname(image)) - reserveBytes) {
        throw new Error(`the disk has no room for ${Math.ceil(holes / MIB)} MiB more`)
      } else await reserve(image, this.#sizeBytes)
    } catch (error) {
      log?.(
        `the blocks of the pool are not reserved (${lastLine(error)}): when the disk of ${image} is full, the pool becomes read-only`,
      )
    }
  }

  /** The size of its content and some headroom. */
  #neededBytes(): number {
    const { chunkBytes }: BtrfsSpace = btrfsSpace(this.#sysfs)
    return Math.min(wholeMib(chunkBytes + HEADROOM), this.#sizeBytes)
  }

  #alone(work: () => Promise<void>): Promise<void> {
    const done = this.#work.then(async () => {
      this.#isBusy = true
      try {
        await work()
      } finally {
        this.#isBusy = false
      }
    })
    this.#work = done.catch(() => {})
    return done
  }

  async #readIds(): Promise<void> {
    const { stdout } = await run('btrfs', ['subvolume', 'list', this.#options.dir], { maxBuffer: 64 * MIB })
    this.#ids.clear()
    for (const [, id, layer] of stdout.matchAll(/^ID (\d+) .* path layers\/(.+)$/gm))
      this.#ids.set(layer!, Number(id))
  }
}

const wholeMib = (bytes: number): number => Math.floor(bytes / MIB) * MIB

const lastLine = (error: unknown): string => (error as Error).message.trim().split('\n').at(-1)!
