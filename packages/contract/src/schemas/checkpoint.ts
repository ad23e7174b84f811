import { z } from 'zod'
import { idPattern } from '../ids.ts'
import { LIMITS } from '../limits.ts'
import { ONE_PLACE, onePlace, pageFields, sandboxId, timestamp, total } from './common.ts'
import { sandbox } from './sandbox.ts'

export const checkpointId = z.string().regex(idPattern('checkpoint'), 'not a checkpoint id')
export const checkpointName = z
  .string()
  .min(1)
  .max(LIMITS.nameLength)
  .regex(/^[^\p{Cc}]+$/u, 'no control characters')

export const createCheckpoint = z.strictObject({
  name: checkpointName.meta({ description: 'Unique among the checkpoints of the sandbox.' }),
})
export type CreateCheckpoint = z.input<typeof createCheckpoint>

export const checkpointInfo = z.object({
  id: checkpointId,
  sandboxId,
  name: z.string(),
  memory: z.boolean().meta({
    description:
      'Whether memory is saved, so that processes continue after a restore. Files, env, store and services always are.',
  }),
  sizeBytes: z.number().nullable().meta({
    description:
      'Size of the files that differ from the image, or, with stacked layers, from the saved state it is built on. Null: not measured yet.',
  }),
  frozenMs: z.number().meta({ description: 'How long the sandbox was frozen to save it.' }),
  createdAt: timestamp,
})
export type CheckpointInfo = z.infer<typeof checkpointInfo>
export const checkpointList = z.object({ checkpoints: z.array(checkpointInfo) })

export const listCheckpoints = z
  .strictObject({ name: z.string().optional(), sandbox: sandboxId.optional(), ...pageFields })
  .refine(onePlace, ONE_PLACE)
export type ListCheckpoints = z.input<typeof listCheckpoints>
export type ListCheckpointsParsed = z.output<typeof listCheckpoints>
export const checkpointPage = z.object({
  checkpoints: z.array(checkpointInfo),
  total,
  cursor: z.string().optional(),
})
export type CheckpointPage = z.infer<typeof checkpointPage>

export const restoredSandbox = z.object({
  sandbox,
  services: z
    .array(
      z.object({
        name: z.string(),
        outcome: z.enum(['started', 'stopped', 'failed']),
        reason: z.string().nullable(),
      }),
    )
    .meta({ description: 'The services of the checkpoint, and whether they were started.' }),
  memory: z.boolean(),
})
export type RestoredSandbox = z.infer<typeof restoredSandbox>
