import { z } from 'zod'
import { offset, pageLimit, timestamp, total } from './common.ts'
import { progressOf } from './progress.ts'
import { runtimeName } from './sandbox.ts'

const imageSource = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('host') }),
  z.object({ kind: z.literal('debian'), suite: z.string() }),
  z.object({ kind: z.literal('oci'), reference: z.string() }),
  z.object({ kind: z.literal('directory'), path: z.string() }),
  z.object({ kind: z.literal('tar'), path: z.string() }),
  z.object({
    kind: z.literal('packages'),
    /** The runtime or image below. */
    base: z.string(),
    dependencies: z.array(z.string()),
    packages: z.array(z.string()),
    pip: z.array(z.string()),
  }),
])

export const runtimeInfo = z.object({
  name: z.string(),
  description: z.string(),
  ready: z.boolean().meta({
    description: 'Whether its image is on this machine. If not, the first sandbox that uses it makes it.',
  }),
  image: z.string().nullable(),
  source: imageSource,
  sizeBytes: z.number().nullable().meta({ description: 'Size of its image; null for the runtime host.' }),
  createdAt: timestamp
    .nullable()
    .meta({ description: 'When its image was made; null for the runtime host.' }),
  versions: z
    .record(z.string(), z.string())
    .meta({ description: 'Versions of its programs, such as node and python, if known.' }),
})
export type RuntimeInfo = z.infer<typeof runtimeInfo>
export const runtimeList = z.object({ runtimes: z.array(runtimeInfo), total })
export const listRuntimes = z.strictObject({
  limit: pageLimit.meta({ description: 'Default: all.' }),
  offset,
})

export const imageInfo = z.object({
  name: z.string(),
  digest: z.string(),
  source: imageSource,
  sizeBytes: z.number(),
  createdAt: timestamp,
  runtimes: z.array(z.string()),
})
export type ImageInfo = z.infer<typeof imageInfo>
export const imageList = z.object({ images: z.array(imageInfo) })

export const pullImage = z.strictObject({
  reference: runtimeName,
  name: runtimeName.optional().meta({ description: 'The runtime name. Default: the reference.' }),
  insecure: z.boolean().optional().meta({ description: 'Allow a registry without TLS.' }),
})
export const buildImage = z.strictObject({
  runtime: runtimeName.meta({ description: 'base, or a runtime that is made of packages, such as bun:1.' }),
})
export const importImage = z.strictObject({
  kind: z.enum(['directory', 'tar']),
  path: z.string().min(1).max(4095),
  name: runtimeName,
})
export const uploadImage = z.strictObject({
  name: runtimeName.meta({ description: 'The runtime name.' }),
})
export const collectResult = z.object({ removed: z.array(z.string()), freedBytes: z.number() })

export const imageProgress = progressOf('image', imageInfo)
export type ImageProgress = z.infer<typeof imageProgress>
