// A snapshot file holds one image and one layer. Images of packages are layers over another image, so they become part of the layer.
import { join } from 'node:path'
import { newId } from '@islet/contract'
import { type Image, type Images, imagesBelow } from '../../../image/image.ts'
import { runOk } from '../../../image/run.ts'
import type { Storage } from '../../../storage/storage.ts'

/** The image at the bottom, and new layers, top first, with what is above it. The caller deletes them; no record holds them. */
export async function splitImage(
  image: Image,
  { images, storage, made }: { images: Images; storage: Storage; made: string[] },
): Promise<Image> {
  const names = imagesBelow(image)
  const base = await images.resolve(names.at(-1)!)
  for (const name of names.slice(0, -1)) {
    const layer = newId('layer')
    made.push(layer)
    await storage.create(layer)
    for (const { tree } of image.trees) {
      const [from, to] = [join(images.directory(name), tree), storage.treePath(layer, tree)]
      await runOk(['cp', '-a', '--reflink=auto', '--no-target-directory', '--', from, to], { tied: true })
    }
  }
  return base
}
