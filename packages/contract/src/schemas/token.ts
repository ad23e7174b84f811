import { z } from 'zod'
import { LIMITS } from '../limits.ts'
import { durationMs, timestamp } from './common.ts'

const lifetime = durationMs.refine(
  (value) => value >= 1000 && value <= LIMITS.tokenMs,
  'a token must be valid for 1 second to 24 hours',
)

export const createToken = z.strictObject({
  expiresIn: lifetime.optional().meta({ description: 'Milliseconds or like 30m. Default: one hour.' }),
})
export type CreateToken = z.input<typeof createToken>

/** A JWT that gives access to one sandbox only. */
export const sandboxToken = z.object({ token: z.string(), expiresAt: timestamp })
export type SandboxToken = z.infer<typeof sandboxToken>
