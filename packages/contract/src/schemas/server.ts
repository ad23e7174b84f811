import { z } from 'zod'
import { checkpointId } from './checkpoint.ts'
import { durationMs, sandboxId } from './common.ts'

export const health = z.object({ status: z.literal('ok'), version: z.string() })
export const ready = z.object({ ready: z.boolean(), reason: z.string().optional() })

const capability = z.union([z.literal(true), z.object({ missing: z.string() })])
export const serverInfo = z.object({
  version: z.string(),
  engine: z.string(),
  isolation: z.string(),
  capabilities: z.record(z.string(), capability),
  machine: z
    .object({
      memoryBytes: z.number(),
      cpuMillis: z.number(),
      diskBytes: z.number(),
      pids: z.number(),
    })
    .meta({ description: 'The resources of the machine: the maximum for one sandbox.' }),
  storage: z.object({ clone: z.string(), diskLimit: z.boolean(), stacks: z.boolean() }),
  disk: z
    .object({
      freeBytes: z.number().meta({ description: 'Free on the disk of the data directory.' }),
      roomBytes: z.number().meta({ description: 'Free for the files of all sandboxes together.' }),
      low: z.string().nullable().meta({
        description:
          'Why the disk is low; null if it is not. While it is low, nothing new is created and sandboxes that fill it are paused.',
      }),
    })
    .meta({ description: 'Free disk space.' }),
  sandboxes: z.number().meta({ description: 'Sandboxes that are neither stopped nor failed.' }),
  warm: z
    .object({
      ready: z.number().meta({ description: 'How many wait now.' }),
      target: z.number().meta({ description: 'How many should wait, from recent demand and free memory.' }),
      min: z.number(),
      max: z.number(),
    })
    .meta({ description: 'Cells started ahead of demand; all 0 if `capabilities.lateRoot` is missing.' }),
  startedAt: z.iso.datetime(),
})
export type ServerInfo = z.infer<typeof serverInfo>

export const prune = z.strictObject({
  dryRun: z.boolean().optional().meta({ description: 'Only say what would be removed. Default: false.' }),
  checkpoints: z.boolean().optional().meta({
    description:
      'Also remove checkpoints of stopped sandboxes, unless an existing sandbox was made from them. Default: false.',
  }),
  olderThan: durationMs.optional().meta({
    description:
      'Only records of sandboxes that were stopped, checkpoints that were made, and images of packages that were used last, at least this long ago. Default: 0.',
  }),
})
export type Prune = z.input<typeof prune>
export type PruneParsed = z.output<typeof prune>

export const pruned = z.object({
  dryRun: z.boolean(),
  images: z
    .array(z.object({ name: z.string(), sizeBytes: z.number() }))
    .meta({ description: 'Images without a runtime name that are not in use.' }),
  checkpoints: z.array(
    z.object({ id: checkpointId, sandboxId, name: z.string(), sizeBytes: z.number().nullable() }),
  ),
  sandboxes: z
    .array(sandboxId)
    .meta({ description: 'Stopped sandboxes whose records, events and kept output are removed.' }),
  freedBytes: z.number().meta({
    description:
      'Approximate size of removed images, interrupted imports, checkpoints and kept output. Files that are still in use stay.',
  }),
})
export type Pruned = z.infer<typeof pruned>
