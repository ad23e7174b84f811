// For tests that need a known image: the Debian base, built once and kept between runs.
import { join } from 'node:path'
import type { Image } from './image.ts'
import { createImages } from './images.ts'

/** The images directory that holds the base, and the base. The first call on a machine takes a minute or two. Never remove what is in it. */
export async function baseImageForTests(): Promise<{ imagesDir: string; image: Image }> {
  const imagesDir = join(process.env.ISLET_TEST_CACHE ?? '/var/cache/islet-test', 'images')
  const images = createImages({ imagesDir, inUse: async () => new Set() })
  return { imagesDir, image: await images.buildBase() }
}
