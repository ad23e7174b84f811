// Removes images: one by name, or all that are not needed. One rename takes an image away, so that it is never seen incomplete.
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { IsletError } from '@islet/contract'
import { type Catalog, IMAGE_NAME } from './catalog.ts'
import { imagesBelow } from './image.ts'
import { discard, removeTree, stagings, treeBytes } from './staging.ts'

/** How long images of packages are kept that nothing uses. A collection on request does not wait. */
export const KEEP_UNUSED_MS = 7 * 24 * 3_600_000

export interface Garbage {
  imagesDir: string
  catalog: Catalog
  /** Images that sandboxes and snapshots need. Callers record an image before they mount it. */
  inUse: () => Promise<Set<string>>
  /** The current image of the runtime `host`, if it was made. */
  hostImage: () => string | undefined
  /** Images that a caller of this server is about to use. */
  claimed: () => Iterable<string>
}

/** Removes a name, or an image with all its names, from the catalog; returns the directories to delete. Callers hold the lock. */
export async function takeAway(garbage: Garbage, runtimeOrImage: string): Promise<string[]> {
  const { catalog, imagesDir } = garbage
  const runtimes = await catalog.named()
  const isImage = IMAGE_NAME.test(runtimeOrImage)
  const name = isImage ? runtimeOrImage : runtimes.get(runtimeOrImage)?.image
  if (name === undefined || (isImage && !(await catalog.image(name)))) {
    throw new IsletError(
      isImage ? 'image_not_found' : 'runtime_not_found',
      `There is no ${isImage ? 'image' : 'runtime'} ${runtimeOrImage}.`,
    )
  }
  const leaving = [...runtimes]
    .filter(([each, { image }]) => (isImage ? image === name : each === runtimeOrImage))
    .map(([each]) => each)
  const isBelow = (await catalog.images()).some(
    (other) => other.name !== name && imagesBelow(other).includes(name),
  )
  const stays =
    [...runtimes].some(([each, { image }]) => image === name && !leaving.includes(each)) ||
    name === garbage.hostImage() ||
    // The next collection after the images above it are gone takes it.
    (isBelow && !isImage)
  if (isBelow && isImage)
    throw new IsletError('image_in_use', `Another image stands on ${name}.`, {
      hint: 'islet image collect removes images that nothing uses; then try again.',
    })
  if (!stays && (await needed(garbage)).has(name))
    throw new IsletError('image_in_use', `${runtimeOrImage} is in use.`)
  await catalog.change((map) => {
    for (const each of leaving) map.delete(each)
  })
  return stays || !(await catalog.image(name)) ? [] : [await discard(imagesDir, name)]
}

/** Moves everything that is not needed out of sight; returns the paths to delete. Callers hold the lock. */
export async function sweep(
  garbage: Garbage,
  unusedMs: number,
): Promise<{ removed: string[]; paths: string[] }> {
  const { names, leftovers } = await unneeded(garbage, unusedMs)
  const paths = leftovers
  for (const name of names) paths.push(await discard(garbage.imagesDir, name))
  return { removed: names, paths }
}

/** Images that nothing names or uses, and leftovers of interrupted imports. Callers hold the lock. */
export async function unneeded(
  garbage: Garbage,
  unusedMs: number,
): Promise<{ names: string[]; leftovers: string[] }> {
  const { catalog, imagesDir } = garbage
  const keep = await needed(garbage)
  for (const { image } of (await catalog.named()).values()) keep.add(image)
  const host = garbage.hostImage()
  if (host) keep.add(host)
  const all = await catalog.images()
  const since = Date.now() - unusedMs
  for (const { name, source } of all)
    if (source.kind === 'packages' && (await usedAt(garbage, name)) > since) keep.add(name)
  for (const image of all) if (keep.has(image.name)) for (const below of imagesBelow(image)) keep.add(below)
  const leftovers = (await stagings(imagesDir)).filter(({ alive }) => !alive).map(({ path }) => path)
  return { names: all.map(({ name }) => name).filter((name) => !keep.has(name)), leftovers }
}

/** `claim` of images.ts sets the time of this file. */
async function usedAt({ imagesDir }: Garbage, name: string): Promise<number> {
  return (await stat(join(imagesDir, name, 'image.json'))).mtimeMs
}

/** Deletes directories; returns how many bytes they used. */
export async function removeAll(paths: readonly string[]): Promise<number> {
  const freedBytes = await bytesOf(paths)
  for (const path of paths) await removeTree(path)
  return freedBytes
}

export async function bytesOf(paths: readonly string[]): Promise<number> {
  let bytes = 0
  for (const path of paths) bytes += await treeBytes(path).catch(() => 0)
  return bytes
}

async function needed({ imagesDir, inUse, claimed }: Garbage): Promise<Set<string>> {
  const claims = (await stagings(imagesDir)).filter(({ alive }) => alive).flatMap(({ claim }) => claim ?? [])
  return new Set([...(await inUse()), ...claimed(), ...claims])
}
