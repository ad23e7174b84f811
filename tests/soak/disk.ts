// A disk of its own for a server: a file with a filesystem, mounted over a loop device. It can be made full for a while.
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmdirSync, rmSync, statfsSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { needs } from '../support/programs.ts'

needs('mkfs.ext4')

const SIZE_BYTES = 8 * 1024 ** 3
const MIB = 1024 ** 2
/** After room was given back it takes a while until all of it can be used: the pool discards its blocks in the background. */
const GRACE_MS = 30_000

export class Disk {
  /** The directory in which the server's data directory is made. */
  readonly path: string
  readonly image: string
  readonly #directory: string
  readonly #filler: string
  #isFull = false
  #lastFullAt = Number.NEGATIVE_INFINITY

  constructor() {
    this.#directory = mkdtempSync(join(tmpdir(), 'islet-soak-'))
    this.image = join(this.#directory, 'disk.img')
    this.path = join(this.#directory, 'disk')
    this.#filler = join(this.path, 'filler')
    writeFileSync(this.image, '')
    truncateSync(this.image, SIZE_BYTES)
    execFileSync('mkfs.ext4', ['-q', '-m', '0', this.image])
    mkdirSync(this.path)
    execFileSync('mount', ['-o', 'loop', this.image, this.path])
  }

  /** Whether calls since then may have met a full disk. */
  wasFull(since: number): boolean {
    return this.#isFull || this.#lastFullAt > since - GRACE_MS
  }

  fill(): void {
    this.#isFull = true
    mkdirSync(this.#filler, { recursive: true })
    for (let size = freeBytes(this.path), count = 0; size >= 4096; count++) {
      if (!allocate(join(this.#filler, String(count)), size)) size = size > MIB ? size - MIB : size / 2
      else size = freeBytes(this.path)
    }
  }

  empty(): void {
    rmSync(this.#filler, { recursive: true, force: true })
    this.#isFull = false
    this.#lastFullAt = Date.now()
  }

  /** `keep`: the file with all that is on it stays. */
  close({ keep = false } = {}): void {
    rmSync(this.#filler, { recursive: true, force: true })
    // After a failure something may still hold on to it for a moment.
    execFileSync('umount', [...(keep ? ['--lazy'] : []), this.path])
    rmdirSync(this.path)
    if (!keep) rmSync(this.#directory, { recursive: true })
  }
}

function freeBytes(path: string): number {
  const { bavail, bsize } = statfsSync(path)
  return bavail * bsize
}

function allocate(file: string, bytes: number): boolean {
  try {
    execFileSync('fallocate', ['-l', String(Math.floor(bytes)), file], { stdio: 'ignore' })
    return true
  } catch {
    rmSync(file, { force: true })
    return false
  }
}
