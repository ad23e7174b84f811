// One image that is being made: its directory, its progress, and how it is published.
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { imageName } from './catalog.ts'
import type { Image, ImageDefaults, ImageSource, Progress, Tree } from './image.ts'
import { type CommitOptions, type Staging, treeBytes } from './staging.ts'

export interface Job {
  staging: Staging
  signal: AbortSignal
  onProgress: (progress: Progress) => void
  /** The existing image of this digest, if any; it is not collected until the job ends. */
  find(digest: string): Promise<Image | undefined>
}

interface Draft {
  digest: string
  source: ImageSource
  versions?: Record<string, string>
  defaults: ImageDefaults
  trees: (name: string) => readonly Tree[]
}

/** Turns `staging.image` into the image of this draft. */
export async function publish(staging: Staging, draft: Draft, options?: CommitOptions): Promise<Image> {
  const name = imageName(draft.digest)
  const image: Image = {
    name,
    digest: draft.digest,
    source: draft.source,
    ...(draft.versions && { versions: draft.versions }),
    trees: draft.trees(name),
    sizeBytes: await treeBytes(staging.image),
    createdAt: new Date().toISOString(),
    defaults: draft.defaults,
  }
  await writeFile(join(staging.image, 'image.json'), `${JSON.stringify(image, null, 2)}\n`)
  await staging.commit(name, options)
  return image
}
