// The image that a new sandbox begins with. A runtime of the catalog is made on its first use. Packages are installed once for each
// image and set of packages, in a builder; what they changed becomes an image over the one below.
import { createHash } from 'node:crypto'
import { hasPackages, IsletError, type PackageSet } from '@islet/contract'
import { checkRuntimeName, imageName } from '../../image/catalog.ts'
import {
  type Image,
  type ImageClaim,
  type Images,
  type ImportOptions,
  imagesBelow,
} from '../../image/image.ts'
import type { Job } from '../../image/job.ts'
import { RECIPES, type Recipe } from '../../image/recipes.ts'
import { Limiter } from '../../lib/limiter.ts'
import { LOOK_MS } from '../disk/disk.ts'
import type { Fleet } from '../fleet.ts'
import { assertSupported } from '../supported.ts'
import { Builder } from './builder.ts'
import { tookTooLong } from './failures.ts'
import { install } from './install.ts'
import { publishLayer } from './layer-image.ts'

/** Raise it when a change here makes other images of the same packages. */
const GENERATION = 1
const BUILD_MS = 15 * 60_000
const BUILDS_AT_ONCE = 2
/** An image of packages can be the base of another one; each is one more lower of every sandbox. */
const MAX_BELOW = 8
/** Installers print thousands of lines. */
const TELL_EVERY_MS = 100
const MAX_MESSAGE = 200

export type WorkOptions = Pick<ImportOptions, 'onProgress' | 'signal'>

interface RuntimesOptions {
  fleet: Fleet
  images: Images
  /** Called after a build: images of packages that were not used for long can go. */
  collect: () => Promise<unknown>
}

interface Installation extends ImportOptions {
  recipe?: Recipe
  /** Install again, for newer packages. */
  again?: boolean
}

export class Runtimes {
  readonly #options: RuntimesOptions
  readonly #limiter = new Limiter(BUILDS_AT_ONCE)
  readonly #closing = new AbortController()
  readonly #builds = new Set<Promise<unknown>>()

  constructor(options: RuntimesOptions) {
    this.#options = options
  }

  /** The image of a runtime with these packages; it is not collected before the claim is disposed of. */
  async claim(runtime: string, asked: Partial<PackageSet>, options: WorkOptions): Promise<ImageClaim> {
    const { images } = this.#options
    if (!hasPackages(asked)) return { image: await this.#imageOf(runtime, options), [Symbol.dispose]() {} }
    const set = normalised(asked)
    for (;;) {
      const image = await this.#imageOf(runtime, options)
      using below = await images.claim(image.name)
      if (!below) continue
      const made = imageName(digestOf(image, set))
      const known = await images.claim(made)
      if (known) return known
      await this.#install(image, set, options)
      const claim = await images.claim(made)
      if (claim) return claim
    }
  }

  /** Makes a runtime of the catalog that consists of packages, anew if there is one. Undefined: it is no such runtime. */
  make(runtime: string, options: ImportOptions): Promise<Image> | undefined {
    const recipe = RECIPES.get(runtime)
    if (!recipe) return undefined
    if (options.insecure)
      throw new IsletError('bad_request', `${runtime} comes from no registry of images: leave insecure out.`)
    if (options.name !== undefined) checkRuntimeName(options.name)
    assertSupported({ runtime }, this.#options.fleet.engine.capabilities)
    return this.#cook(runtime, { ...options, recipe, again: true })
  }

  /** Ends all builds. */
  async close(): Promise<void> {
    this.#closing.abort(new IsletError('draining'))
    await Promise.allSettled(this.#builds)
  }

  async #imageOf(runtime: string, options: WorkOptions): Promise<Image> {
    const { images } = this.#options
    try {
      return await images.resolve(runtime)
    } catch (error) {
      if (!(error instanceof IsletError && error.code === 'runtime_not_ready')) throw error
      const recipe = RECIPES.get(runtime)
      if (recipe) return this.#cook(runtime, { ...options, recipe })
      const source = await images.sourceOf(runtime)
      if (source?.kind === 'oci') return images.pull(source.reference, { ...options, name: runtime })
      throw error
    }
  }

  async #cook(runtime: string, options: Installation & { recipe: Recipe }): Promise<Image> {
    const { images } = this.#options
    const { recipe, name = runtime } = options
    for (;;) {
      using base = await images.claim((await this.#debian(options)).name)
      if (!base) continue
      const { image } = base
      if (hasPackages(recipe)) return await this.#install(image, normalised(recipe), { ...options, name })
      return await images.make(`name ${name} ${image.name}`, { ...options, name }, async () => image)
    }
  }

  /** The Debian base. It becomes the runtime `base`, unless that is an image of another kind. */
  async #debian({ onProgress, signal }: WorkOptions): Promise<Image> {
    const { images } = this.#options
    const base = await images.resolve('base')
    if (base.source.kind === 'debian') return base
    return images.buildBase({ onProgress, signal, name: base.source.kind === 'host' ? 'base' : undefined })
  }

  #install(below: Image, set: PackageSet, { recipe, again, ...options }: Installation): Promise<Image> {
    if (imagesBelow(below).length >= MAX_BELOW) {
      throw new IsletError('bad_request', `${below.name} stands on too many images of packages.`, {
        hint: 'Name all packages in one create instead.',
      })
    }
    const digest = digestOf(below, set, recipe)
    const own = [this.#closing.signal, ...(options.signal ? [options.signal] : [])]
    const shared = { ...options, signal: AbortSignal.any(own) }
    return this.#options.images.make(`packages ${digest} ${again ?? false}`, shared, async (job) => {
      const found = again ? undefined : await job.find(digest)
      if (found) return found
      const fresh = again ? digestOf(below, set, recipe, Date.now()) : digest
      const names = [...set.dependencies, ...set.packages, ...set.pip].join(', ')
      job.onProgress({ stage: 'build', message: `Installing ${names}`.slice(0, MAX_MESSAGE) })
      const building = this.#limiter.run(() => this.#build(job, below, { set, recipe, digest: fresh }))
      this.#builds.add(building)
      return building.finally(() => this.#builds.delete(building))
    })
  }

  async #build(
    job: Job,
    below: Image,
    { set, recipe, digest }: { set: PackageSet; recipe: Recipe | undefined; digest: string },
  ): Promise<Image> {
    const { fleet, collect } = this.#options
    const tell = teller(job)
    job.signal.throwIfAborted()
    const limit = AbortSignal.timeout(BUILD_MS)
    const full = new AbortController()
    const { disk } = fleet
    // No record names the builder, so it cannot be paused like a sandbox that fills the disk.
    const looking = setInterval(() => disk.low !== undefined && full.abort(disk.error()), LOOK_MS)
    const signal = AbortSignal.any([job.signal, limit, full.signal])
    try {
      await using builder = await Builder.start(fleet, below, signal)
      const versions = await install(set, { builder, recipe, tell })
      job.onProgress({ stage: 'finish', message: 'Keeping the packages' })
      const image = await publishLayer(
        { ...job, signal },
        { builder, below, set, digest, versions, env: recipe?.env ?? {} },
      )
      fleet.log.info({ image: image.name, below: below.name, ...set }, 'packages installed')
      collect().catch((error) => fleet.log.warn({ error }, 'unused images not collected'))
      return image
    } catch (error) {
      throw limit.aborted && !job.signal.aborted ? tookTooLong(BUILD_MS) : error
    } finally {
      clearInterval(looking)
    }
  }
}

function normalised({ dependencies = [], packages = [], pip = [] }: Partial<PackageSet>): PackageSet {
  const sorted = (names: readonly string[]) => [...new Set(names)].sort()
  return { dependencies: sorted(dependencies), packages: sorted(packages), pip: sorted(pip) }
}

/** `unique` makes an image of its own, for newer packages. */
function digestOf(below: Image, set: PackageSet, recipe?: Recipe, unique?: number): string {
  const { dependencies, packages, pip } = set
  const cooked = recipe && [recipe.commands, recipe.env]
  const inputs = [GENERATION, below.digest, dependencies, packages, pip, cooked, unique]
  return createHash('sha256').update(JSON.stringify(inputs)).digest('hex')
}

function teller({ onProgress }: Job): (message: string) => void {
  let toldAt = 0
  return (message) => {
    const now = performance.now()
    if (now - toldAt < TELL_EVERY_MS) return
    toldAt = now
    onProgress({ stage: 'build', message: message.slice(0, MAX_MESSAGE) })
  }
}
