// The images and runtime names on disk:
//
//   <images>/<name>/image.json   an image; written before the directory gets its name, so that an image is always complete
//   <images>/runtimes.json       catalog names that pull, import and build added
import { statSync } from 'node:fs'
import { readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { IsletError } from '@islet/contract'
import type { Image, ImageSource, Runtime } from './image.ts'
import { RECIPES } from './recipes.ts'
import { tempName } from './staging.ts'

interface NamedRuntime {
  image: string
  source: ImageSource
}

const oci = (name: string, reference: string, description: string): Runtime => ({
  name,
  description,
  source: { kind: 'oci', reference },
})

const ofPackages = [...RECIPES].map(([name, recipe]): Runtime => {
  const { description, dependencies, packages, pip } = recipe
  return { name, description, source: { kind: 'packages', base: 'base', dependencies, packages, pip } }
})

/** Built-in names. All but `base` and `host` are made on first use. */
export const BUILT_IN: readonly Runtime[] = [
  {
    name: 'base',
    description: "This machine's own programs, read-only, until islet image build base makes a Debian",
    source: { kind: 'host' },
  },
  { name: 'host', description: "This machine's own programs, read-only", source: { kind: 'host' } },
  oci('python:3.14', 'docker.io/library/python:3.14-slim', 'Python 3.14 on Debian'),
  oci('python:3.13', 'docker.io/library/python:3.13-slim', 'Python 3.13 on Debian'),
  oci('python:3.12', 'docker.io/library/python:3.12-slim', 'Python 3.12 on Debian'),
  ...ofPackages,
  oci('debian:12', 'docker.io/library/debian:12-slim', 'Debian 12, bare'),
  oci('ubuntu:24.04', 'docker.io/library/ubuntu:24.04', 'Ubuntu 24.04, bare'),
  oci('alpine:3', 'docker.io/library/alpine:3', 'Alpine 3, bare'),
]

export const IMAGE_NAME = /^img-[0-9a-f]{16}$/
const RUNTIME_NAME = /^[A-Za-z0-9][A-Za-z0-9._:/@-]{0,254}$/

export function imageName(digest: string): string {
  return `img-${digest.slice(0, 16)}`
}

export function checkRuntimeName(name: string): void {
  if (name === 'host' || name.startsWith('img-') || !RUNTIME_NAME.test(name)) {
    throw new IsletError('bad_request', `${JSON.stringify(name)} cannot be the name of a runtime.`, {
      hint: 'Use letters, digits and . _ : / @ -; host and img-… are reserved.',
    })
  }
}

export interface Catalog {
  /** The image of that name; undefined if it is not on the disk. */
  image(name: string): Promise<Image | undefined>
  images(): Promise<Image[]>
  /** The names in runtimes.json. */
  named(): Promise<ReadonlyMap<string, NamedRuntime>>
  /** Changes runtimes.json in one step. Callers hold the lock of `createImages`. */
  change(edit: (runtimes: Map<string, NamedRuntime>) => void): Promise<void>
}

export function openCatalog(imagesDir: string): Catalog {
  const file = join(imagesDir, 'runtimes.json')
  const read = new Map<string, Image>()
  let named: { stamp: string; runtimes: Map<string, NamedRuntime> } | undefined

  async function image(name: string): Promise<Image | undefined> {
    const path = join(imagesDir, name, 'image.json')
    if (!IMAGE_NAME.test(name) || stampOf(path) === '') {
      read.delete(name)
      return undefined
    }
    const known = read.get(name)
    if (known) return known
    const found = JSON.parse(await readFile(path, 'utf8')) as Image
    read.set(name, found)
    return found
  }

  async function load(): Promise<Map<string, NamedRuntime>> {
    const stamp = stampOf(file)
    if (named?.stamp === stamp) return named.runtimes
    const runtimes = new Map<string, NamedRuntime>(
      stamp === ''
        ? []
        : Object.entries(JSON.parse(await readFile(file, 'utf8')) as Record<string, NamedRuntime>),
    )
    named = { stamp, runtimes }
    return runtimes
  }

  return {
    image,
    async images() {
      const names = (await readdir(imagesDir)).filter((name) => IMAGE_NAME.test(name)).sort()
      const found = await Promise.all(names.map(image))
      return found.filter((each) => each !== undefined)
    },
    named: load,
    async change(edit) {
      const runtimes = new Map(await load())
      edit(runtimes)
      const temp = join(imagesDir, tempName())
      try {
        await writeFile(temp, `${JSON.stringify(Object.fromEntries(runtimes), null, 2)}\n`, { flush: true })
        await rename(temp, file)
      } finally {
        await rm(temp, { force: true })
      }
      named = undefined
    },
  }
}

/** Changes whenever the file does; empty if there is none. One system call, because every create calls `resolve`. */
function stampOf(path: string): string {
  const stat = statSync(path, { bigint: true, throwIfNoEntry: false })
  return stat ? `${stat.ino} ${stat.size} ${stat.mtimeNs}` : ''
}
