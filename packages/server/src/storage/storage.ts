// Storage makes, clones and removes layers: directories of file changes over an image. The engine mounts them.
// Every way of cloning passes storage.suite.ts.

/** How a layer is cloned on this filesystem, best first. */
export type CloneMethod = 'btrfs' | 'reflink' | 'copy'

export interface StorageCapabilities {
  clone: CloneMethod
  /** Whether `limitBytes` is enforced; if not, limits are accepted and reported as not enforced. */
  diskLimit: boolean
  /** Whether layers can be stacked; if not, each holds all files. */
  stacks: boolean
}

export interface LayerOptions {
  /** The most bytes the layer may hold. Absent: no limit. */
  limitBytes?: number
}

interface Clone {
  method: CloneMethod
  durationMs: number
  /** It survives a power cut; if false, call `sync`. */
  durable: boolean
}

export interface Room {
  /** Free now, for files of sandboxes. */
  freeBytes: number
  /** How much the pool can still grow. */
  moreBytes: number
}

export interface Storage {
  readonly capabilities: StorageCapabilities
  /** Makes an empty layer. A name in use is an error of code `conflict`. */
  create(layer: string, options?: LayerOptions): Promise<void>
  /** A copy of `from` as it is now, under a new name. The source must not be written to meanwhile (freeze it). */
  clone(from: string, to: string, options?: LayerOptions & { readOnly?: boolean }): Promise<Clone>
  /** Merges layers, top first, into one new layer with the same effect on what is below. The result is `durable`. */
  flatten(from: readonly string[], to: string): Promise<void>
  /** Removes a layer and its files; does nothing if it does not exist. */
  delete(layer: string): Promise<void>
  setLimit(layer: string, limitBytes: number | undefined): Promise<void>
  /** The largest size of the filesystem that holds the layers. */
  sizeBytes(): number
  /** How much of it is free. */
  room(): Room
  /** The size of each layer: live if the filesystem counts it, else of a recent walk. Layers without a known size are left out. */
  growing(layers: readonly string[]): Promise<Map<string, number>>
  /** Shrinks a pool that is its own filesystem: unused room goes back to the machine. */
  giveBack(): Promise<void>
  usageBytes(layer: string): Promise<number>
  /** The path of one tree, to read a layer that nothing writes to, or to fill a new one. */
  treePath(layer: string, tree: string): string
  list(): Promise<string[]>
  has(layer: string): Promise<boolean>
  /** All layers as they are now survive a power cut. */
  sync(): Promise<void>
  /** Unmounts the pool. Layers stay. */
  close(): Promise<void>
}
