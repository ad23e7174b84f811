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
    .meta({ description: 'What the machine has, and so the most that a sandbox can be given.' }),
  storage: z.object({ clone: z.string(), diskLimit: z.boolean(), stacks: z.boolean() }),
  disk: z
    .object({
      freeBytes: z.number().meta({ description: 'On the disk of the data directory.' }),
      roomBytes: z.number().meta({ description: 'For the files of all sandboxes together.' }),
      low: z.string().nullable().meta({
        description:
          'While it is low, a sentence: then nothing new is made, and sandboxes that fill it are paused.',
      }),
    })
    .meta({ description: 'What is free.' }),
  sandboxes: z.number().meta({ description: 'Live ones.' }),
  warm: z
    .object({
      ready: z.number().meta({ description: 'That wait now.' }),
      target: z.number().meta({ description: 'That are to wait, by recent demand and free memory.' }),
      min: z.number(),
      max: z.number(),
    })
    .meta({ description: 'Cells that are started ahead; all 0 where `capabilities.lateRoot` is missing.' }),
  startedAt: z.iso.datetime(),
})
export type ServerInfo = z.infer<typeof serverInfo>

export const prune = z.strictObject({
  dryRun: z.boolean().optional().meta({ description: 'Only say what would be removed. Default: false.' }),
  checkpoints: z.boolean().optional().meta({
    description:
      'Also checkpoints of sandboxes that are gone, unless a sandbox that is there was made from them. Default: false.',
  }),
  olderThan: durationMs.optional().meta({
    description:
      'Only records of sandboxes that were stopped, and checkpoints that were made, at least this long ago. Default: 0.',
  }),
})
export type Prune = z.input<typeof prune>
export type PruneParsed = z.output<typeof prune>

export const pruned = z.object({
  dryRun: z.boolean(),
  images: z
    .array(z.object({ name: z.string(), sizeBytes: z.number() }))
    .meta({ description: 'That no runtime names and nothing stands on.' }),
  checkpoints: z.array(
    z.object({ id: checkpointId, sandboxId, name: z.string(), sizeBytes: z.number().nullable() }),
  ),
  sandboxes: z
    .array(sandboxId)
    .meta({ description: 'That are gone: their records, events and what is left of their output.' }),
  freedBytes: z.number().meta({
    description:
      'About: files of images, of imports that were cut off, of checkpoints and of kept output. What others stand on stays.',
  }),
})
export type Pruned = z.infer<typeof pruned>
