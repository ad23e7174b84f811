import { z } from 'zod'
import { idPattern } from '../ids.ts'
import { LIMITS } from '../limits.ts'
import { byteLength, noNul, timestamp } from './common.ts'

export const patchId = z.string().regex(idPattern('patch'), 'not a patch id')

export const createPatch = z.strictObject({
  script: z
    .string()
    .min(1, 'a script is not empty')
    .refine(
      (text) => noNul(text) && byteLength(text) <= LIMITS.patchScriptBytes,
      `a script has at most ${LIMITS.patchScriptBytes} bytes and no NUL`,
    )
    .meta({ description: 'Run by bash as root, in the working directory of the sandbox.' }),
  description: z.string().max(LIMITS.descriptionLength).refine(noNul, 'no NUL').optional(),
})
export type CreatePatch = z.input<typeof createPatch>
export type CreatePatchParsed = z.output<typeof createPatch>

export const patchInfo = z.object({
  id: patchId,
  checkpointId: z.string(),
  sequence: z.number().int().meta({ description: 'Patches are applied in this order.' }),
  script: z.string(),
  description: z.string().nullable(),
  createdAt: timestamp,
})
export type PatchInfo = z.infer<typeof patchInfo>
export const patchList = z.object({ patches: z.array(patchInfo) })

/** The result of a patch in one sandbox. */
export const patchRun = z.object({
  patchId,
  status: z.enum(['pending', 'running', 'applied', 'failed']).meta({
    description: 'pending: not run yet, because an earlier patch failed or the sandbox was not woken since.',
  }),
  exitCode: z.number().nullable(),
  output: z.string().meta({ description: 'The end of its output.' }),
  reason: z.string().nullable().meta({ description: 'Why the patch could not be run.' }),
  at: timestamp.nullable(),
})
export type PatchRun = z.infer<typeof patchRun>
export const patchRunList = z.object({ patches: z.array(patchRun) })
