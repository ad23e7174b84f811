// For tests that need a known image: the Debian base, built once and kept between runs.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Image } from './image.ts'
import { createImages } from './images.ts'

/**
 * The images directory that holds the base, and the base. The first call on a machine takes a minute; test files that run at the same time
 * wait for one build. Other tests use the directory too: mount from it, add to it, remove nothing.
 */
export async function baseImageForTests(): Promise<{ imagesDir: string; image: Image }> {
  const cache = process.env.ISLET_TEST_CACHE ?? '/var/cache/islet-test'
  const imagesDir = join(cache, 'images')
  await mkdir(cache, { recursive: true })
  const images = createImages({ imagesDir, inUse: async () => new Set() })
  await using _ = await lock(join(cache, 'lock'))
  return { imagesDir, image: await images.buildBase() }
}

/** Held by a child for as long as it can read from us, so that it ends with us however we end. */
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
