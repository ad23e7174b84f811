// Storage makes, clones and removes layers: directories of file changes over an image. The engine mounts them.
// Every way of cloning passes storage.suite.ts.

/** How a layer is cloned on this filesystem, best first. */
export type CloneMethod = 'btrfs' | 'reflink' | 'copy'

export interface StorageCapabilities {
  clone: CloneMethod
  /** Whether `limitBytes` is enforced; if not, limits are accepted and reported as not enforced. */
  diskLimit: boolean
  /** Whether a layer can lie on others; if not, each holds everything. */
  stacks: boolean
}

export interface LayerOptions {
  /** The most bytes the layer may hold. Absent: no limit. */
  limitBytes?: number
}

interface Clone {
  method: CloneMethod
  durationMs: number
  /** It survives a power cut; if not, `sync`. */
  durable: boolean
}

export interface Room {
  /** For files of sandboxes, now. */
  freeBytes: number
  /** What there can be more of, without anything being deleted. */
  moreBytes: number
}

export interface Storage {
  readonly capabilities: StorageCapabilities
  /** Makes an empty layer. A name in use is an error of code `conflict`. */
  create(layer: string, options?: LayerOptions): Promise<void>
  /** A copy of `from` as it is now, under a new name. The source must not be written to meanwhile (freeze it). */
  clone(from: string, to: string, options?: LayerOptions & { readOnly?: boolean }): Promise<Clone>
  /** Merges layers, top first, into one new layer that means the same over whatever is below them. It is `durable`. */
  flatten(from: readonly string[], to: string): Promise<void>
  /** Removes a layer and all it holds; of one that does not exist, nothing. */
  delete(layer: string): Promise<void>
  setLimit(layer: string, limitBytes: number | undefined): Promise<void>
  /** How much the filesystem that holds the layers can hold. */
  sizeBytes(): number
  /** What is free of it. */
  room(): Room
  /** What these layers hold: live where the filesystem counts, else as of a moment ago; nothing of those that are not known yet. */
  growing(layers: readonly string[]): Promise<Map<string, number>>
  /** Room that layers do not need goes back to the machine, where they have a filesystem of their own. */
  giveBack(): Promise<void>
  usageBytes(layer: string): Promise<number>
  /** Where the files of one tree lie, for who reads a layer that nobody writes to, or fills a new one. */
  treePath(layer: string, tree: string): string
  list(): Promise<string[]>
  has(layer: string): Promise<boolean>
  /** From now on all layers as they are survive a power cut. */
  sync(): Promise<void>
  /** Lets go of the pool (unmounts what start mounted). Layers stay. */
  close(): Promise<void>
}
