// An image is an immutable root filesystem; a runtime is a catalog name for one, with defaults.
import type { Job } from './job.ts'

/** One mounted subtree of a root: `/`, and for the host image also `/usr`. */
export interface Tree {
  /** The subdirectory of a layer that holds this tree's changes: `root`, `usr`. */
  tree: string
  /** Where it is mounted: `/` or one top-level directory. */
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

export interface Image {
  /** Its directory below <data>/images, and its identity: `img-` + the first 16 hex digits of the digest. */
  name: string
  /** sha256 of what it was made from: the OCI manifest, the tar, the tree. */
  digest: string
  source: ImageSource
  /** Of what is in it, where it is known: `node`, `python`. */
  versions?: Record<string, string>
  trees: readonly Tree[]
  sizeBytes: number
  createdAt: string
  defaults: ImageDefaults
}

/** What a sandbox of this image starts with when the caller says nothing else. */
export interface ImageDefaults {
  user: string
  workdir: string
  env: Record<string, string>
}

export interface Runtime {
  name: string
  description: string
  /** The image it means now; absent while it has to be pulled or built first. */
  image?: string
  source: ImageSource
  /** Of that image, unless it is the machine itself. */
  made?: Pick<Image, 'sizeBytes' | 'createdAt' | 'versions'>
}

export interface Progress {
  stage: 'resolve' | 'download' | 'unpack' | 'build' | 'finish'
  message: string
  /** 0 to 1 where it is known. */
  fraction?: number
}

export interface Images {
  /** The catalog: built-in names, and those that pull and build added. */
  runtimes(): Promise<Runtime[]>
  /** The image of a runtime (or the image of that name), ready to mount. Code `runtime_not_found`, or `runtime_not_ready` when it must be pulled or built first. */
  resolve(runtime: string): Promise<Image>
  list(): Promise<(Image & { runtimes: string[] })[]>
  /** Pulls an OCI reference and gives it a catalog name (the reference itself unless named). */
  pull(reference: string, options?: ImportOptions): Promise<Image>
  /** A directory or tar (plain, gzip, zstd, xz) as an image. `at`: where it is read, if not by its path. */
  import(source: ImageSource, options: ImportOptions & { name: string; at?: string }): Promise<Image>
  /** A tar that comes in. */
  upload(body: AsyncIterable<Uint8Array>, options: ImportOptions & { name: string }): Promise<Image>
  /** The Debian base: the runtime `base`. Made from the same inputs already, that one is returned unless forced. */
  buildBase(options?: BaseOptions): Promise<Image>
  /** An image that `fill` makes in a directory of its own, or finds. Callers with the same key share one. */
  make(key: string, options: ImportOptions, fill: (job: Job) => Promise<Image>): Promise<Image>
  /** Where the trees of an image lie. */
  directory(name: string): string
  /** Takes a runtime name away, and its image when nothing else names it. Code `image_in_use` when a sandbox or snapshot needs it. */
  remove(runtimeOrImage: string): Promise<void>
  /** Removes images that no runtime names and `inUse` does not hold, and what cut-off imports left. */
  collect(options?: { dryRun?: boolean }): Promise<Collected>
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
  /** Build anew, for newer packages. */
  force?: boolean
  /** Debian packages beside the standard ones, such as `build-essential`. */
  packages?: readonly string[]
}
