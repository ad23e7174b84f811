import { z } from 'zod'
import { LIMITS } from '../limits.ts'
import { durationMs, timestamp } from './common.ts'

const lifetime = durationMs.refine(
  (value) => value >= 1000 && value <= LIMITS.tokenMs,
  'a token lives between 1 second and 24 hours',
)

export const createToken = z.strictObject({
  expiresIn: lifetime.optional().meta({ description: 'Milliseconds or like 30m. Default: one hour.' }),
})
export type CreateToken = z.input<typeof createToken>

/** A JWT that reaches one sandbox and nothing else. */
export const sandboxToken = z.object({ token: z.string(), expiresAt: timestamp })
export type SandboxToken = z.infer<typeof sandboxToken>
