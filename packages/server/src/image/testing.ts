// For tests that need a known image: the Debian base, built once and kept between runs.
//
//   <cache>/lock                held while a process looks for a base
//   <cache>/<definition>/       one for each definition of the base, so that different checkouts do not disturb each other
//     lock                      held while the base is built
//     images/                   an images directory, with the base in it
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, readdir, stat, utimes } from 'node:fs/promises'
import { join } from 'node:path'
import { defineBase } from './debian/debian.ts'
import type { Image } from './image.ts'
import { createImages } from './images.ts'
import { removeTree } from './staging.ts'

/** A base that no test used for this long belongs to an old definition. */
const UNUSED_MS = 7 * 24 * 3_600_000

/**
 * The images directory with the base, and the base. The first call on a machine takes a minute; test files that run at the same time
 * wait for one build. Tests share the directory: mount from it, add to it, remove nothing.
 */
export async function baseImageForTests(): Promise<{ imagesDir: string; image: Image }> {
  const cache = process.env.ISLET_TEST_CACHE ?? '/var/cache/islet-test'
  const entry = await cacheEntry(cache, (await defineBase()).inputs.slice(0, 16))
  const imagesDir = join(entry, 'images')
  const images = createImages({ imagesDir, inUse: async () => new Set() })
  await using _ = await lock(join(entry, 'lock'))
  return { imagesDir, image: await images.buildBase() }
}

/** The directory of one definition. Its mtime is the time of the last use; directories that were unused for long are removed. */
export async function cacheEntry(cache: string, definition: string): Promise<string> {
  const entry = join(cache, definition)
  await mkdir(cache, { recursive: true })
  await using _ = await lock(join(cache, 'lock'))
  await mkdir(entry, { recursive: true })
  const now = new Date()
  await utimes(entry, now, now)
  for (const found of await readdir(cache, { withFileTypes: true })) {
    const path = join(cache, found.name)
    if (found.isDirectory() && (await stat(path)).mtimeMs < now.getTime() - UNUSED_MS) await removeTree(path)
  }
  return entry
}

/** A child process holds the lock while its stdin is open, so that the lock ends with this process however it ends. */
async function lock(file: string): Promise<AsyncDisposable> {
  const child = spawn('flock', [file, 'sh', '-c', 'echo held; exec cat'], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  await once(child.stdout, 'data')
  return {
    async [Symbol.asyncDispose]() {
      child.stdin.end()
      await once(child, 'exit')
    },
  }
}
