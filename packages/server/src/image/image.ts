// An image is an immutable root filesystem; a runtime is a catalog name for one, with defaults.
import type { PackageSet } from '@islet/contract'
import type { Job } from './job.ts'

/** One mounted subtree of a root: `/`, and for the host image also `/usr`. */
export interface Tree {
  /** The subdirectory of a layer that holds this tree's changes: `root`, `usr`. */
  tree: string
  /** Its mount point: `/` or one top-level directory. */
  at: string
  /** Read-only directories below the layer, top first. */
  lowers: readonly Lower[]
}

export type Lower =
  | { kind: 'layer'; name: string; tree: string }
  | { kind: 'image'; name: string; tree: string }
  | { kind: 'host-usr' }

export type ImageSource =
  | { kind: 'host' }
  | { kind: 'debian'; suite: string }
  | { kind: 'oci'; reference: string }
  | { kind: 'directory'; path: string }
  | { kind: 'tar'; path: string }
  | ({ kind: 'packages'; base: string } & PackageSet)

export interface Image {
  /** Its directory below <data>/images, and its identity: `img-` + the first 16 hex digits of the digest. */
  name: string
  /** sha256 of what it was made from: the OCI manifest, the tar, the tree. */
  digest: string
  source: ImageSource
  /** Versions of programs in it, if known: `node`, `python`. */
  versions?: Record<string, string>
  trees: readonly Tree[]
  sizeBytes: number
  createdAt: string
  defaults: ImageDefaults
}

/** Defaults of a sandbox of this image. */
export interface ImageDefaults {
  user: string
  workdir: string
  env: Record<string, string>
}

export interface Runtime {
  name: string
  description: string
  /** Its current image; absent until it is pulled or built. */
  image?: string
  source: ImageSource
  /** Details of that image, unless it is the runtime `host`. */
  made?: Pick<Image, 'sizeBytes' | 'createdAt' | 'versions'>
}

export interface Progress {
  stage: 'resolve' | 'download' | 'unpack' | 'build' | 'finish'
  message: string
  /** 0 to 1, if known. */
  fraction?: number
}

export interface Images {
  /** The catalog: built-in names, and names that pull, import and build added. */
  runtimes(): Promise<Runtime[]>
  /** The image of a runtime (or the image of that name), ready to mount. Code `runtime_not_found`, or `runtime_not_ready` when it must be pulled or built first. */
  resolve(runtime: string): Promise<Image>
  /** What a runtime of the catalog is made from; undefined if the catalog has no such name. */
  sourceOf(runtime: string): Promise<ImageSource | undefined>
  /** The image of that name, if it is on the disk. It is not collected before the claim is disposed of. */
  claim(image: string): Promise<ImageClaim | undefined>
  list(): Promise<(Image & { runtimes: string[] })[]>
  /** Pulls an OCI reference and gives it a catalog name (the reference itself unless named). */
  pull(reference: string, options?: ImportOptions): Promise<Image>
  /** Imports a directory or tar (plain, gzip, zstd, xz). `at`: where to read it, if not at its path. */
  import(source: ImageSource, options: ImportOptions & { name: string; at?: string }): Promise<Image>
  /** Imports a tar from a stream. */
  upload(body: AsyncIterable<Uint8Array>, options: ImportOptions & { name: string }): Promise<Image>
  /** Builds the Debian base, the runtime `base`. Returns an existing image with the same inputs, unless forced. */
  buildBase(options?: BaseOptions): Promise<Image>
  /** Makes an image with `fill`, which may also find an existing one. Concurrent callers with the same key share one run. */
  make(key: string, options: ImportOptions, fill: (job: Job) => Promise<Image>): Promise<Image>
  /** The directory with the trees of an image. */
  directory(name: string): string
  /** Removes a runtime name, and its image if nothing else names it. Code `image_in_use` if a sandbox or snapshot needs it. */
  remove(runtimeOrImage: string): Promise<void>
  /**
   * Removes images that no runtime names and `inUse` does not contain, and leftovers of interrupted imports. Images of packages must
   * also be unused for `unusedMs`.
   */
  collect(options?: { dryRun?: boolean; unusedMs?: number }): Promise<Collected>
}

export interface ImageClaim extends Disposable {
  image: Image
}

interface Collected {
  removed: string[]
  freedBytes: number
}

export interface ImportOptions {
  name?: string
  onProgress?: (progress: Progress) => void
  signal?: AbortSignal
  /** OCI: allow a registry without TLS. */
  insecure?: boolean
}

interface BaseOptions extends ImportOptions {
  /** Build again, for newer packages. */
  force?: boolean
  /** Additional Debian packages, such as `build-essential`. */
  packages?: readonly string[]
}

/** The images that a root of this image mounts, top first. */
export function imagesBelow({ trees }: Pick<Image, 'trees'>): string[] {
  const lowers = trees.flatMap((tree) => tree.lowers)
  return [...new Set(lowers.flatMap((lower) => (lower.kind === 'image' ? lower.name : [])))]
}
