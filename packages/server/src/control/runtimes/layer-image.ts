// Makes an image of what changed in a builder: its trees go over those of the image below, which it needs as long as it exists.
import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { PackageSet } from '@islet/contract'
import { dropFileCapabilities } from '../../image/file-capabilities.ts'
import type { Image } from '../../image/image.ts'
import { resolveInside } from '../../image/inside.ts'
import { type Job, publish } from '../../image/job.ts'
import { runOk } from '../../image/run.ts'
import { exists } from '../../lib/exists.ts'
import type { Builder } from './builder.ts'

/** Every sandbox has its own; those of the builder must not hide the ones of the image below. */
const OWN_ETC = ['hostname', 'hosts', 'machine-id', 'resolv.conf']

interface Layer {
  builder: Builder
  below: Image
  set: PackageSet
  digest: string
  versions: Record<string, string>
  env: Record<string, string>
}

export async function publishLayer(job: Job, layer: Layer): Promise<Image> {
  const { builder, below, set, digest, versions, env } = layer
  const { staging, signal } = job
  const { dependencies, packages, pip } = set
  await builder.stop()
  for (const { tree } of below.trees) {
    const [from, to] = [builder.treePath(tree), join(staging.image, tree)]
    // Everything is copied: ids, hard links, whiteouts, and the marks of overlayfs.
    if (await exists(from))
      await runOk(['cp', '-a', '--reflink=auto', '--no-target-directory', '--', from, to], {
        signal,
        tied: true,
      })
    else await mkdir(to)
  }
  const root = join(staging.image, below.trees[0]!.tree)
  for (const name of OWN_ETC) {
    const path = await resolveInside(root, `etc/${name}`, 'keep')
    if (path) await rm(join(root, path), { recursive: true, force: true })
  }
  await dropFileCapabilities(staging.image)
  return publish(staging, {
    digest,
    source: { kind: 'packages', base: below.name, dependencies, packages, pip },
    versions: { ...below.versions, ...versions },
    defaults: { ...below.defaults, env: { ...below.defaults.env, ...env } },
    trees: (name) =>
      below.trees.map((tree) => ({
        ...tree,
        lowers: [{ kind: 'image', name, tree: tree.tree }, ...tree.lowers],
      })),
  })
}
