// Roots of sandboxes over saved layers.
import type { Root } from '../../engine/engine.ts'
import type { Tree } from '../../image/image.ts'
import type { Storage } from '../../storage/storage.ts'

/** A root with its own layer over a saved one. `makeLayer` makes `layer`. */
export function rootOver(saved: Root, layer: string, storage: Storage): Root {
  if (clonesLayers(storage)) return { layer, trees: saved.trees }
  const over = (tree: Tree): Tree => ({
    ...tree,
    lowers: [{ kind: 'layer', name: saved.layer, tree: tree.tree }, ...tree.lowers],
  })
  return { layer, trees: saved.trees.map(over) }
}

/** Makes an empty layer over the saved one, or a clone of the saved one. */
export async function makeLayer(
  storage: Storage,
  options: { layer: string; over?: Root; limitBytes: number },
): Promise<void> {
  const { layer, over, limitBytes } = options
  if (over && clonesLayers(storage)) await storage.clone(over.layer, layer, { limitBytes })
  else await storage.create(layer, { limitBytes })
}

/**
 * True if layers cannot be stacked, or a clone costs nothing. A clone is also the better copy: hard links stay linked when they
 * are written to, and all inode numbers stay those of one subvolume.
 */
export function clonesLayers({ capabilities }: Storage): boolean {
  return !capabilities.stacks || capabilities.clone === 'btrfs'
}

/** The layers of a root, topmost first. */
export function stackOf(root: Root): string[] {
  const below = root.trees[0]?.lowers ?? []
  return [root.layer, ...below.flatMap((lower) => (lower.kind === 'layer' ? lower.name : []))]
}

/** The same root with one layer in place of all. */
export function flattened(root: Root, layer: string): Root {
  const trees = root.trees.map((tree) => ({
    ...tree,
    lowers: tree.lowers.filter(({ kind }) => kind !== 'layer'),
  }))
  return { layer, trees }
}

/** Without images, paths inside contain the name of the layer, which is another one in a copy. */
export function movedPath(path: string, from: string, to: string, storage: Storage): string {
  return storage.capabilities.stacks ? path : path.replaceAll(`/${from}`, `/${to}`)
}
