// A pool that is as large as it has to be. It grows in steps before what is in it needs the room, and no further than its limit or
// than the machine's disk can spare; every block of it is reserved, so the filesystem in it can never run out of room below.
//
// A step is: reserve a longer file, lengthen the loop device, resize the filesystem. Each may have been the last one before a
// kill -9; `settle` goes on from any of them.
import { accessSync, constants, statfsSync, statSync } from 'node:fs'
import { truncate } from 'node:fs/promises'
import { dirname } from 'node:path'
import { type BtrfsSpace, btrfsDirectory, btrfsSpace, subvolumeBytes } from './btrfs-space.ts'
import { followFile, holeBytes, loopBytes, MIB, reserve, run } from './pool-image.ts'
import { freeBytes } from './room.ts'
import type { Room } from './storage.ts'

/** It is looked at this often; a fast disk fills less than HEADROOM in this time and that of a step together. */
const LOOK_MS = 100
/** What is free in it before it grows. */
const HEADROOM = 1024 * MIB
/** For names and attributes of files. */
const METADATA_HEADROOM = 64 * MIB
/**
 * After so many chunks for data the filesystem takes one for metadata: else data can take all, and then no file can be written or
 * removed. The first one is taken at once.
 */
const DATA_CHUNKS = { first: 1, later: 8 }
/** Of the pool, there is for metadata once the first chunk was taken. */
const METADATA_SHARE = 1 / 16
const STEP = 1024 * MIB
/** Less than this is not worth a step. */
const LEAST_STEP = 16 * MIB
const READ_ONLY =
  'The pool has become read-only, because the disk below it failed. A new start mounts it again, and sandboxes start over their files.'
/** Before a step that failed is tried again. */
const RETRY_MS = 5000

interface ElasticOptions {
  image: string
  /** Where it is mounted. */
  dir: string
  loop: string
  limitBytes: number
  /** What stays free on the machine's disk. */
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

  /** Of a pool that is mounted. */
  static async open(options: ElasticOptions): Promise<Elastic> {
    const sysfs = btrfsDirectory(options.loop)
    if (sysfs === undefined) throw new Error(`${options.loop} holds no btrfs that is mounted`)
    const elastic = new Elastic(options, sysfs)
    await elastic.#settle()
    await elastic.#setRatio()
    elastic.#timer = setInterval(() => elastic.#look(), LOOK_MS).unref()
    return elastic
  }

  /** Resolves with a sentence when the filesystem takes no more writes: then only mounting it again helps. */
  get broken(): Promise<string> {
    return this.#broken.promise
  }

  room(): Room {
    const { chunkBytes, freeDataBytes, freeMetadataBytes } = btrfsSpace(this.#sysfs)
    const rest = Math.max(this.#sizeBytes - chunkBytes, 0)
    // Without room for names, files cannot be written either.
    const free = Math.min(rest + freeDataBytes, (rest + freeMetadataBytes) * (HEADROOM / METADATA_HEADROOM))
    return { freeBytes: free, moreBytes: this.#moreBytes() }
  }

  /** What each of these layers holds, live; nothing of those for which the filesystem does not count. */
  async layerBytes(layers: readonly string[]): Promise<Map<string, number>> {
    if (layers.some((layer) => !this.#ids.has(layer))) await this.#readIds()
    const found = layers.map((layer) => {
      const id = this.#ids.get(layer)
      return [layer, id === undefined ? undefined : subvolumeBytes(this.#sysfs, id)] as const
    })
    return new Map(found.filter((entry): entry is [string, number] => entry[1] !== undefined))
  }

  /** Gives back to the machine what is free in it but for some headroom. */
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
      this.#options.log?.(`the pool did not grow (${lastLine(error)}); tried again in ${RETRY_MS / 1000} s`)
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
      return false // it was unmounted by somebody else
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

  /** Device and filesystem are as long as the file. */
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

  /** What a server before left unfinished, or never did: a file with holes, of before all blocks were reserved. */
  async #settle(): Promise<void> {
    const { image, reserveBytes, log } = this.#options
    await this.#follow()
    const holes = await holeBytes(image)
    if (holes === 0) return
    const target = this.#neededBytes()
    try {
      if (target < this.#sizeBytes) {
        // Before it is moved together: that writes.
        await reserve(image, target)
        await this.#shrinkTo(target)
      } else if (holes > freeBytes(dirname(image)) - reserveBytes) {
        throw new Error(`the disk has no room for the ${Math.ceil(holes / MIB)} MiB that it may still take`)
      } else await reserve(image, this.#sizeBytes)
    } catch (error) {
      log?.(
        `the blocks of the pool are not reserved (${lastLine(error)}): when the disk of ${image} is full, the pool becomes read-only`,
      )
    }
  }

  /** What is in it and some headroom. */
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
