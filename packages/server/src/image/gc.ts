// Removes images: one by name, or all that are not needed. One rename takes an image away, so that it is never seen incomplete.
import { IsletError } from '@islet/contract'
import { type Catalog, IMAGE_NAME } from './catalog.ts'
import { discard, removeTree, stagings, treeBytes } from './staging.ts'

export interface Garbage {
  imagesDir: string
  catalog: Catalog
  /** Images that sandboxes and snapshots need. Callers record an image before they mount it. */
  inUse: () => Promise<Set<string>>
  /** The current image of the runtime `host`, if it was made. */
  hostImage: () => string | undefined
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
  const stays =
    [...runtimes].some(([each, { image }]) => image === name && !leaving.includes(each)) ||
    name === garbage.hostImage()
  if (!stays && (await needed(garbage)).has(name))
    throw new IsletError('image_in_use', `${runtimeOrImage} is in use.`)
  await catalog.change((map) => {
    for (const each of leaving) map.delete(each)
  })
  return stays || !(await catalog.image(name)) ? [] : [await discard(imagesDir, name)]
}

/** Moves everything that is not needed out of sight; returns the paths to delete. Callers hold the lock. */
export async function sweep(garbage: Garbage): Promise<{ removed: string[]; paths: string[] }> {
  const { names, leftovers } = await unneeded(garbage)
  const paths = leftovers
  for (const name of names) paths.push(await discard(garbage.imagesDir, name))
  return { removed: names, paths }
}

/** Images that nothing names or uses, and leftovers of interrupted imports. Callers hold the lock. */
export async function unneeded(garbage: Garbage): Promise<{ names: string[]; leftovers: string[] }> {
  const { catalog, imagesDir } = garbage
  const keep = await needed(garbage)
  for (const { image } of (await catalog.named()).values()) keep.add(image)
  const host = garbage.hostImage()
  if (host) keep.add(host)
  const leftovers = (await stagings(imagesDir)).filter(({ alive }) => !alive).map(({ path }) => path)
  const names = (await catalog.images()).map(({ name }) => name).filter((name) => !keep.has(name))
  return { names, leftovers }
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

async function needed({ imagesDir, inUse }: Garbage): Promise<Set<string>> {
  const claims = (await stagings(imagesDir)).filter(({ alive }) => alive).flatMap(({ claim }) => claim ?? [])
  return new Set([...(await inUse()), ...claims])
}
