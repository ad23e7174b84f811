// `works` is pulled with two lines of progress, `breaks` fails after one, `missing` fails at once, `slow` waits to be aborted.
import { once } from 'node:events'
import { IsletError } from '@islet/contract'
import type { Image, ImageSource, Images, ImportOptions, Runtime } from '../../image/image.ts'

export class MemoryImages implements Images {
  readonly images = new Map<string, Image & { runtimes: string[] }>()
  readonly removed: string[] = []
  readonly imported: ImageSource[] = []
  aborted = 0

  async runtimes(): Promise<Runtime[]> {
    return [
      { name: 'base', description: 'the base', image: 'img-0', source: { kind: 'host' } },
      { name: 'later', description: 'not here', source: { kind: 'oci', reference: 'later:1' } },
    ]
  }

  async resolve(): Promise<Image> {
    throw new IsletError('runtime_not_found')
  }

  async list() {
    return [...this.images.values()]
  }

  async pull(reference: string, { name, onProgress, signal }: ImportOptions = {}): Promise<Image> {
    if (reference === 'missing') throw new IsletError('image_not_found')
    onProgress?.({ stage: 'resolve', message: reference })
    if (reference === 'breaks') throw new IsletError('server_disk_full')
    if (reference === 'slow') {
      await once(signal!, 'abort')
      this.aborted++
      throw signal!.reason
    }
    onProgress?.({ stage: 'download', message: reference, fraction: 0.5 })
    return this.#add(name ?? reference, { kind: 'oci', reference })
  }

  async import(source: ImageSource, options: ImportOptions & { name: string }): Promise<Image> {
    this.imported.push(source)
    return this.#add(options.name, source)
  }

  async buildBase(): Promise<Image> {
    return this.#add('base', { kind: 'debian', suite: 'bookworm' })
  }

  async remove(name: string): Promise<void> {
    this.removed.push(name)
  }

  async collect() {
    return { removed: ['img-1'], freedBytes: 10 }
  }

  #add(name: string, source: ImageSource): Image {
    const image = {
      name: `img-${this.images.size}`,
      digest: 'sha256:0',
      source,
      trees: [],
      sizeBytes: 1,
      createdAt: '2026-01-02T03:04:05.000Z',
      defaults: { user: 'user', workdir: '/', env: {} },
      runtimes: [name],
    }
    this.images.set(image.name, image)
    return image
  }
}
