// A snapshot as one file for another machine: a tar, compressed with zstd, of these members in this order.
//
//   manifest.json      the Manifest below
//   store.jsonl        the store, one {key, value, expiresAt} per line
//   layer/<tree>/…     the differences from the image, all layers merged; whiteouts as in overlayfs
//   image/<tree>/…     the image, unless it is `host` or there is none
//   checksums.json     sha256 and size of each of these; for a tree, of its part of the tar
//
// Ids and paths in it belong to the machine that wrote it. An import never uses them as they are.
import {
  env,
  IDLE_ACTIONS,
  LIMITS,
  metadata,
  portNumber,
  RESOURCE_BOUNDS,
  runtimeName,
  startService,
  updateSandbox,
  updateSnapshot,
  userName,
} from '@islet/contract'
import { z } from 'zod'

export const FORMAT = 'islet-snapshot'
export const FORMAT_VERSION = 1

/** The one tree of an engine without images. */
export const WITHOUT_IMAGE = 'files'

export const MEMBERS = {
  manifest: 'manifest.json',
  store: 'store.jsonl',
  checksums: 'checksums.json',
} as const

const text = z.string().max(LIMITS.descriptionLength)
const path = z
  .string()
  .max(LIMITS.pathBytes)
  .regex(/^[^\0]*$/)
const digest = z.string().regex(/^[0-9a-f]{64}$/)
const within = ([least, most]: readonly [number, number]) => z.number().int().min(least).max(most)
const lastingMs = z.number().int().min(0).max(LIMITS.lastingMs)
const treeName = z.string().regex(/^[a-z][a-z0-9-]{0,30}$/)

const jsonBytes = (value: unknown): number => Buffer.byteLength(JSON.stringify(value))

/** Every sandbox has its own mounts there. */
const TAKEN = ['/proc', '/dev', '/sys']

function isMountable(trees: { tree: string; at: string }[]): boolean {
  const places = trees.map(({ at }) => at)
  const isDistinct = (names: string[]) => new Set(names).size === names.length
  return (
    places[0] === '/' &&
    isDistinct(places) &&
    isDistinct(trees.map(({ tree }) => tree)) &&
    !places.some((at) => TAKEN.includes(at))
  )
}

/** Parsed first: the rest may differ in another version. */
export const manifestHead = z.object({ format: z.literal(FORMAT), version: z.number() })

const image = z.discriminatedUnion('kind', [
  /** The programs of the machine. Another machine can be used if its `system` is the same. */
  z.object({ kind: z.literal('host'), digest, system: text }),
  z.object({
    kind: z.literal('included'),
    digest,
    source: z.discriminatedUnion('kind', [
      z.object({ kind: z.literal('debian'), suite: text }),
      z.object({ kind: z.literal('oci'), reference: text }),
      z.object({ kind: z.literal('directory'), path }),
      z.object({ kind: z.literal('tar'), path }),
    ]),
    defaults: z.object({ user: text, workdir: path, env }),
    trees: z
      .array(
        z.object({
          tree: treeName,
          at: z.string().regex(/^\/[a-z0-9]{0,30}$/),
          /** Directories of the image, top first. */
          lowers: z.array(treeName).min(1).max(8),
        }),
      )
      .min(1)
      .max(4)
      .refine(isMountable, 'the first tree is the root, and all others have different places'),
  }),
  /** Engine without images: the files are all there is. */
  z.object({ kind: z.literal('none'), home: path }),
])
export type ImageOfFile = z.infer<typeof image>

export const manifest = manifestHead.extend({
  version: z.literal(FORMAT_VERSION),
  islet: text,
  arch: text,
  snapshot: z.object({
    id: text,
    name: updateSnapshot.shape.name.unwrap(),
    tag: text.nullable(),
    description: updateSnapshot.shape.description.unwrap(),
    createdAt: text,
  }),
  state: z.object({
    runtime: runtimeName,
    metadata,
    project: updateSandbox.shape.project.unwrap(),
    env,
    resources: z.object({
      memoryBytes: within(RESOURCE_BOUNDS.memoryBytes),
      cpuMillis: within(RESOURCE_BOUNDS.cpuMillis),
      diskBytes: within(RESOURCE_BOUNDS.diskBytes),
      pids: within(RESOURCE_BOUNDS.pids),
    }),
    network: z.object({ enabled: z.boolean(), port: portNumber.nullable().default(null) }),
    user: z.union([userName, z.literal('')]),
    workdir: path,
    storeAccess: z.boolean(),
    keepAwake: z.boolean().optional(),
    timeouts: z.object({
      idleMs: lastingMs,
      executionMs: lastingMs,
      pausedMs: lastingMs,
      onIdle: z.enum(IDLE_ACTIONS),
    }),
  }),
  services: z
    .array(z.object({ spec: startService, isWanted: z.boolean(), path, installed: z.boolean() }))
    .max(LIMITS.services)
    .refine(
      (services) => services.reduce((bytes, { spec }) => bytes + jsonBytes(spec), 0) <= LIMITS.servicesBytes,
      'too large',
    ),
  image,
  /** The trees that the layer has. */
  layer: z.array(treeName).max(4),
})
export type Manifest = z.infer<typeof manifest>
export const STATE_FIELDS = Object.keys(manifest.shape.state.shape) as (keyof Manifest['state'])[]

export const checksums = z.array(z.object({ name: text, sha256: digest, sizeBytes: z.number() }))
export type Checksums = z.infer<typeof checksums>

export function imageTrees({ trees }: Extract<ImageOfFile, { kind: 'included' }>): string[] {
  return [...new Set(trees.flatMap(({ lowers }) => lowers))]
}
