import {
  type ImageInfo,
  type ImageProgress,
  imageProgressShape,
  type RouteName,
} from '@islet/contract/client'
import { checked } from '../client/checked.ts'
import type { CallOptions } from '../client/client.ts'
import { Part } from '../client/part.ts'
import { ClientError, errorFromBody } from '../errors.ts'
import { ABORTABLE, type Abortable, guard, type Names } from '../options.ts'
import type { Content } from '../transport/body.ts'

export type ImageStep = Extract<ImageProgress, { type: 'progress' }>

export interface ImageWorkOptions extends Abortable {
  onProgress?(step: ImageStep): void
}

export class Images extends Part {
  async list(options: Abortable = {}): Promise<ImageInfo[]> {
    return (await this.client.call('listImages', options)).images
  }

  /** Pulls an image from a registry. Its runtime name is `name`, or the reference. */
  pull(
    reference: string,
    options: { name?: string; insecure?: boolean } & ImageWorkOptions = {},
  ): Promise<ImageInfo> {
    const { name, insecure, ...work } = options
    return this.#work('pullImage', { body: { reference, name, insecure } }, work)
  }

  build(runtime: 'base' = 'base', options: ImageWorkOptions = {}): Promise<ImageInfo> {
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
    { onProgress, signal }: ImageWorkOptions,
  ): Promise<ImageInfo> {
    for await (const line of this.client.lines(name, { ...ask, signal } as CallOptions<Name>)) {
      const step = checked<ImageProgress>(imageProgressShape, line, 'A progress line')
      if (step.type === 'done') return step.image
      if (step.type === 'error') throw errorFromBody(step.error)
      onProgress?.(step)
    }
    throw new ClientError('bad_response', 'The answer ended before the image was done.')
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
