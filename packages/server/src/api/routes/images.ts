import { type ImageInfo, IsletError, type RuntimeInfo, runtimeName } from '@islet/contract'
import type { Image, Images, ImportOptions, Runtime } from '../../image/image.ts'
import { openSource } from '../../image/import-dirs.ts'
import { RECIPES } from '../../image/recipes.ts'
import { progressLines } from '../progress.ts'
import type { ApiDeps, Handlers, Lines } from '../route.ts'

export function imageRoutes({ images, runtimes, config }: ApiDeps) {
  return {
    listRuntimes: async ({ query: { limit = Number.POSITIVE_INFINITY, offset = 0 } }) => {
      const all = await images.runtimes()
      return { runtimes: all.slice(offset, offset + limit).map(runtimeInfo), total: all.length }
    },
    listImages: async () => ({ images: (await images.list()).map(imageInfo) }),
    pullImage: ({ body: { reference, ...options }, signal }) =>
      follow(images, signal, (more) => {
        const asked = { ...options, ...more }
        return runtimes.make(reference, asked) ?? images.pull(reference, asked)
      }),
    buildImage: ({ body: { runtime }, signal }) =>
      follow(images, signal, (more) => {
        const image = runtime === 'base' ? images.buildBase(more) : runtimes.make(runtime, more)
        return image ?? Promise.reject(notBuilt(runtime))
      }),
    importImage: ({ body: { kind, path, name }, signal }) =>
      follow(images, signal, async (more) => {
        await using opened = await openSource(path, config.importDirs)
        return await images.import({ kind, path }, { ...more, name, at: opened.at })
      }),
    uploadImage: ({ query: { name }, body, signal }) =>
      follow(images, signal, (more) => images.upload(body, { ...more, name })),
    collectImages: () => images.collect(),
    removeImage: ({ params }) => {
      if (!runtimeName.safeParse(params.name).success) throw new IsletError('image_not_found')
      return images.remove(params.name)
    },
  } satisfies Partial<Handlers>
}

/** Progress lines of work on an image; the last line is the image. */
function follow(
  images: Images,
  signal: AbortSignal,
  work: (options: Pick<ImportOptions, 'onProgress' | 'signal'>) => Promise<Image>,
): Lines<unknown> {
  return progressLines('image', async (onProgress) => {
    const image = await work({ onProgress, signal })
    const listed = (await images.list()).find(({ name }) => name === image.name)
    return imageInfo(listed ?? { ...image, runtimes: [] })
  })
}

function notBuilt(runtime: string): IsletError {
  return new IsletError('bad_request', `The runtime ${runtime} is not built on this machine.`, {
    hint: `It can build ${['base', ...RECIPES.keys()].join(', ')}; islet image pull gets others.`,
  })
}

function imageInfo({
  name,
  digest,
  source,
  sizeBytes,
  createdAt,
  runtimes,
}: Image & { runtimes: string[] }): ImageInfo {
  return { name, digest, source, sizeBytes, createdAt, runtimes }
}

function runtimeInfo({ name, description, image, source, made }: Runtime): RuntimeInfo {
  return {
    name,
    description,
    ready: image !== undefined,
    image: image ?? null,
    source,
    sizeBytes: made?.sizeBytes ?? null,
    createdAt: made?.createdAt ?? null,
    versions: made?.versions ?? {},
  }
}
