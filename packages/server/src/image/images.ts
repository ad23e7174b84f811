// The images of one data directory. Each way to make an image is in a file of its own.
import { chmodSync, createWriteStream, mkdirSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { isAbsolute, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { IsletError, newId } from '@islet/contract'
import { Limiter } from '../lib/limiter.ts'
import { importArchive } from './archive.ts'
import { localAuthorities, trusting } from './authorities.ts'
import { BUILT_IN, checkRuntimeName, IMAGE_NAME, imageName, openCatalog } from './catalog.ts'
import { Claims } from './claims.ts'
import { buildBase } from './debian/debian.ts'
import { shadowFileCapabilities } from './file-capabilities.ts'
import { bytesOf, type Garbage, removeAll, sweep, takeAway, unneeded } from './gc.ts'
import { allowedPaths } from './host/etc.ts'
import {
  buildHostRoot,
  HOST_DEFAULTS,
  hideLocalSettings,
  hostFingerprint,
  hostGaps,
  hostTrees,
} from './host/host.ts'
import type { Image, ImageSource, Images, ImportOptions, Runtime } from './image.ts'
import { type Job, publish } from './job.ts'
import { pullOci } from './oci/oci.ts'
import { parseReference } from './oci/registry.ts'
import { createShared } from './shared.ts'
import { explainDisk, stage } from './staging.ts'

export interface ImagesOptions {
  /** <data>/images. Gets mode 0700: images contain set-user-id programs that users of the machine must not be able to start. */
  imagesDir: string
  /** Names of the images that sandboxes and snapshots need. */
  inUse: () => Promise<Set<string>>
  /** Runs the work while no waiting cell uses an image that is not `inUse`. */
  alone?: <T>(work: () => Promise<T>) => Promise<T>
  log?: (line: string) => void
  /** The root of the machine for the runtime `host`. */
  hostRoot?: string
}

interface MakeOptions extends ImportOptions {
  /** The source to record for the name, if an existing image from another source may be used. */
  source?: ImageSource
}

/** How long the fingerprint of the machine is cached, so that a hundred concurrent creates compute it once. */
const HOST_CHECK_MS = 1000

export function createImages(options: ImagesOptions): Images {
  const { imagesDir, inUse, alone = (work) => work(), log = () => {}, hostRoot = '/' } = options
  mkdirSync(imagesDir, { recursive: true })
  chmodSync(imagesDir, 0o700)
  const catalog = openCatalog(imagesDir)
  const share = createShared<Image>()
  const lock = new Limiter(1)
  const locked = <T>(work: () => Promise<T>) => lock.run(work)
  let hostPaths: string[] | undefined
  let hostImage: string | undefined
  let hostCheckedAt = Number.NEGATIVE_INFINITY
  const directory = (name: string) => join(imagesDir, name)
  const claims = new Claims(imagesDir)
  const garbage: Garbage = {
    imagesDir,
    catalog,
    inUse,
    hostImage: () => hostImage,
    claimed: () => claims.names(),
  }

  async function host(): Promise<Image> {
    const known =
      hostImage && performance.now() - hostCheckedAt < HOST_CHECK_MS && (await catalog.image(hostImage))
    if (known) return known
    hostPaths ??= await allowedPaths(hostRoot)
    const digest = hostFingerprint(hostRoot, hostPaths)
    hostImage = imageName(digest)
    hostCheckedAt = performance.now()
    const found = await catalog.image(hostImage)
    if (found) return found
    return make(`host ${digest}`, {}, async ({ staging }) => {
      for (const gap of hostGaps(hostRoot)) log(gap)
      await mkdir(join(staging.image, 'root'))
      await buildHostRoot(hostRoot, join(staging.image, 'root'))
      const defaults = trusting(HOST_DEFAULTS, await localAuthorities(hostRoot))
      const usr = join(staging.image, 'usr')
      const shadowed = [
        await shadowFileCapabilities(hostRoot, usr),
        await hideLocalSettings(hostRoot, usr),
      ].includes(true)
      const trees = (name: string) => hostTrees(name, { shadowed })
      const draft = { digest, source: { kind: 'host' }, defaults, trees } as const
      // Not synced: the first sandbox of a machine waits for this image, and it can be made again at any time.
      return publish(staging, draft, { synced: false })
    })
  }

  /** Makes an image once for all concurrent callers with the same key, and gives it the name. */
  async function make(key: string, options: MakeOptions, fill: (job: Job) => Promise<Image>): Promise<Image> {
    const { name, source } = options
    const image = await share(key, options, async ({ signal, onProgress }) => {
      await using staging = await stage(imagesDir)
      const find = async (digest: string) => {
        await staging.claim(imageName(digest))
        // Another server may be making the same image.
        await staging.first(signal)
        return catalog.image(imageName(digest))
      }
      try {
        const made = await fill({ staging, signal, onProgress, find })
        await give(name, made, source)
        // Another server may have published the same image first.
        return (await catalog.image(made.name)) ?? made
      } catch (error) {
        throw explainDisk(error)
      }
    })
    await give(name, image, source)
    return image
  }

  async function give(name: string | undefined, image: Image, source = image.source): Promise<void> {
    if (name === undefined || (await catalog.named()).get(name)?.image === image.name) return
    await locked(() => catalog.change((runtimes) => void runtimes.set(name, { image: image.name, source })))
  }

  async function sourceOf(runtime: string): Promise<ImageSource | undefined> {
    const named = (await catalog.named()).get(runtime)
    return named?.source ?? BUILT_IN.find(({ name }) => name === runtime)?.source
  }

  async function resolve(runtime: string): Promise<Image> {
    if (IMAGE_NAME.test(runtime)) {
      const image = await catalog.image(runtime)
      if (!image) throw new IsletError('image_not_found', `There is no image ${runtime}.`)
      return image
    }
    if (runtime === 'host') return host()
    const named = (await catalog.named()).get(runtime)
    const image = named && (await catalog.image(named.image))
    if (image) return image
    if (runtime === 'base') return host()
    if (named || BUILT_IN.some(({ name }) => name === runtime))
      throw new IsletError('runtime_not_ready', `The image of the runtime ${runtime} is not on this machine.`)
    throw new IsletError('runtime_not_found', `There is no runtime ${JSON.stringify(runtime)}.`)
  }

  async function runtimes(): Promise<Runtime[]> {
    const current = await host().catch(() => undefined)
    const named = await catalog.named()
    const list = new Map<string, Runtime>()
    for (const each of BUILT_IN) {
      const isHost = each.source.kind === 'host' && current
      list.set(each.name, { ...each, ...(isHost && { image: current.name }) })
    }
    for (const [name, { image, source }] of named) {
      const ready = await catalog.image(image)
      if (name === 'base' && !ready) continue
      const known = BUILT_IN.find((each) => each.name === name && each.source.kind !== 'host')
      const description = known?.description ?? describe(source, ready?.versions)
      list.set(name, { name, description, source, ...(ready && { image, made: ready }) })
    }
    return [...list.values()]
  }

  return {
    runtimes,
    resolve,
    sourceOf,
    claim: (name) =>
      // Under the lock: a collection ends before, or sees the claim.
      locked(async () => {
        const image = await catalog.image(name)
        return image && claims.take(image)
      }),
    async list() {
      const all = await runtimes()
      return (await catalog.images()).map((image) => ({
        ...image,
        runtimes: all.filter((each) => each.image === image.name).map(({ name }) => name),
      }))
    },
    async pull(reference, options = {}) {
      const known = BUILT_IN.find(({ name }) => name === reference)?.source
      const wanted = known?.kind === 'oci' ? known.reference : parseReference(reference).reference
      const { name = reference, insecure = false } = options
      checkRuntimeName(name)
      const source = { kind: 'oci', reference: wanted } as const
      return make(`oci ${insecure} ${wanted}`, { ...options, name, source }, (job) =>
        pullOci({ ...job, reference: wanted, insecure }),
      )
    },
    async import(source, options) {
      checkRuntimeName(options.name)
      if (source.kind !== 'directory' && source.kind !== 'tar') {
        throw new IsletError('bad_request', 'Only a directory or a tar can be imported.')
      }
      if (!isAbsolute(source.path))
        throw new IsletError('bad_request', 'The path of an import must be absolute.')
      return make(`${source.kind} ${source.path}`, { ...options, source }, (job) =>
        importArchive({ ...job, source, at: options.at ?? source.path }),
      )
    },
    async upload(body, options) {
      checkRuntimeName(options.name)
      const source = { kind: 'tar', path: options.name } as const
      return make(`upload ${newId('request')}`, { ...options, source }, async (job) => {
        job.onProgress({ stage: 'download', message: 'Receiving the tar' })
        const at = join(job.staging.path, 'upload')
        await pipeline(body, createWriteStream(at, { mode: 0o600 }), { signal: job.signal })
        return importArchive({ ...job, source, at })
      })
    },
    async buildBase(options = {}) {
      const { force = false, packages = [] } = options
      const named = (await catalog.named()).get('base')
      const image = named && (await catalog.image(named.image))
      const current = image && { image, path: join(imagesDir, image.name) }
      const key = `debian ${force} ${packages.join(' ')}`
      return make(key, { name: 'base', ...options }, (job) => buildBase({ ...job, packages, force, current }))
    },
    make,
    directory,
    async remove(runtimeOrImage) {
      await removeAll(await alone(() => locked(() => takeAway(garbage, runtimeOrImage))))
    },
    async collect({ dryRun = false, unusedMs = 0 } = {}) {
      await host().catch(() => {})
      const { names, leftovers } = await locked(() => unneeded(garbage, unusedMs))
      if (dryRun)
        return { removed: names, freedBytes: await bytesOf([...names.map(directory), ...leftovers]) }
      // Waiting cells keep their roots if there is nothing to remove.
      if (names.length + leftovers.length === 0) return { removed: [], freedBytes: 0 }
      const { removed, paths } = await alone(() => locked(() => sweep(garbage, unusedMs)))
      return { removed, freedBytes: await removeAll(paths) }
    },
  }
}

function describe(source: Runtime['source'], versions: Image['versions'] = {}): string {
  switch (source.kind) {
    case 'oci':
      return `Pulled from ${source.reference}`
    case 'debian':
      return [`Debian ${source.suite}`, ...Object.entries(versions).map((each) => each.join(' '))].join(', ')
    case 'packages':
      return `${[...source.dependencies, ...source.packages, ...source.pip].join(', ')} over ${source.base}`
    case 'host':
      return "This machine's own programs, read-only"
    default:
      return `Imported from ${source.path}`
  }
}
