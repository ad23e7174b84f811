// One image in the making: where its files go, how to tell how far it is, and how it becomes an image.
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { imageName } from './catalog.ts'
import type { Image, ImageDefaults, ImageSource, Progress, Tree } from './image.ts'
import { type CommitOptions, type Staging, treeBytes } from './staging.ts'

export interface Job {
  staging: Staging
  signal: AbortSignal
  onProgress: (progress: Progress) => void
  /** The image of this digest when it is there already; it then stays until the job ends. */
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
