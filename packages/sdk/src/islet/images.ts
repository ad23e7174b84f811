import { type ImageInfo, imageProgressShape, type RouteName } from '@islet/contract/client'
import type { CallOptions } from '../client/client.ts'
import { Part } from '../client/part.ts'
import { type Progressing, type Step, work } from '../client/work.ts'
import { ABORTABLE, type Abortable, guard, type Names } from '../options.ts'
import type { Content } from '../transport/body.ts'

export type ImageStep = Step

export interface ImageWorkOptions extends Abortable, Progressing {}

export class Images extends Part {
  async list(options: Abortable = {}): Promise<ImageInfo[]> {
    return (await this.client.call('listImages', options)).images
  }

  /** Pulls an image from a registry, or makes a runtime of packages anew. Its runtime name is `name`, or the reference. */
  pull(
    reference: string,
    options: { name?: string; insecure?: boolean } & ImageWorkOptions = {},
  ): Promise<ImageInfo> {
    const { name, insecure, ...work } = options
    return this.#work('pullImage', { body: { reference, name, insecure } }, work)
  }

  /** Builds `base`, or a runtime that is made of packages, such as `bun:1`. */
  build(runtime = 'base', options: ImageWorkOptions = {}): Promise<ImageInfo> {
    return this.#work('buildImage', { body: { runtime } }, options)
  }

  /** Makes an image from a tar of a root filesystem: plain, gzip, xz or zstd. */
  upload(name: string, tar: Content, options: ImageWorkOptions = {}): Promise<ImageInfo> {
    return this.#work('uploadImage', { query: { name }, content: tar }, options)
  }

  /** Makes an image from a directory or tar on the server's machine, if the server's settings allow that path. */
  import(
    source: { kind: 'directory' | 'tar'; path: string; name: string },
    options: ImageWorkOptions = {},
  ): Promise<ImageInfo> {
    return this.#work('importImage', { body: source }, options)
  }

  /** Removes a runtime name, and its image if no other name uses it. */
  async remove(name: string, options: Abortable = {}): Promise<void> {
    await this.client.call('removeImage', { params: { name }, signal: options.signal })
  }

  /** Removes images that have no name and are not in use. */
  collect(options: Abortable = {}): Promise<{ removed: string[]; freedBytes: number }> {
    return this.client.call('collectImages', options)
  }

  async #work<Name extends RouteName>(
    name: Name,
    ask: Pick<CallOptions<Name>, 'body' | 'query' | 'content'>,
    options: ImageWorkOptions,
  ): Promise<ImageInfo> {
    const call = { ...ask, ...options } as CallOptions & Progressing
    return (await work<{ image: ImageInfo }>(this.client, name, call, imageProgressShape)).image
  }
}

const WORK: Names<ImageWorkOptions> = { onProgress: 1, signal: 1 }

guard(Images.prototype, 'islet.images', {
  list: [ABORTABLE],
  pull: [null, { ...WORK, name: 1, insecure: 1 }],
  build: [null, WORK],
  upload: [null, null, WORK],
  import: [null, WORK],
  remove: [null, ABORTABLE],
  collect: [ABORTABLE],
})
