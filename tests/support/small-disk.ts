// A small disk of its own for the data directory of a server: filling it fills nothing else.
import { execFileSync } from 'node:child_process'
import { closeSync, mkdirSync, mkdtempSync, openSync, rmSync, statfsSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { needs } from './programs.ts'

needs('mkfs.ext4')

const MIB = 1024 ** 2

export class SmallDisk implements Disposable {
  readonly dir: string
  readonly #file: string
  readonly #fillers: string[] = []

  constructor(mib: number) {
    this.dir = mkdtempSync(join(tmpdir(), 'islet-disk-'))
    this.#file = `${this.dir}.img`
    execFileSync('truncate', ['--size', `${mib}M`, this.#file])
    // Nothing of it is only root's.
    execFileSync('mkfs.ext4', ['-q', '-m', '0', this.#file])
    mkdirSync(this.dir, { recursive: true })
    execFileSync('mount', ['-o', 'loop', this.#file, this.dir])
  }

  get freeBytes(): number {
    const { bavail, bsize } = statfsSync(this.dir)
    return bavail * bsize
  }

  /** Takes all free space but `leaveMib`, like another program on the machine. */
  fill(leaveMib = 0): void {
    const path = join(this.dir, `filler-${this.#fillers.length}`)
    this.#fillers.push(path)
    if (leaveMib === 0) writeAll(path)
    else execFileSync('fallocate', ['--length', String(this.freeBytes - leaveMib * MIB), path])
  }

  /** All that was filled is free again. */
  empty(): void {
    for (const path of this.#fillers.splice(0)) rmSync(path, { force: true })
  }

  [Symbol.dispose](): void {
    execFileSync('umount', [this.dir])
    rmSync(this.dir, { recursive: true })
    rmSync(this.#file)
  }
}

/** While it runs, the temporary directory is on this disk. */
export async function onDisk<T>(disk: SmallDisk, make: () => Promise<T>): Promise<T> {
  const { TMPDIR } = process.env
  process.env.TMPDIR = disk.dir
  try {
    return await make()
  } finally {
    if (TMPDIR === undefined) delete process.env.TMPDIR
    else process.env.TMPDIR = TMPDIR
  }
}

function writeAll(path: string): void {
  const file = openSync(path, 'w')
  try {
    for (const size of [MIB, 4096]) writeUntilFull(file, Buffer.alloc(size))
  } finally {
    closeSync(file)
  }
}

function writeUntilFull(file: number, bytes: Buffer): void {
  try {
    for (;;) writeSync(file, bytes)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error
  }
}
