import { z } from 'zod'
import { LIMITS } from '../limits.ts'
import { durationMs } from './common.ts'

const lasting = durationMs.refine((value) => value <= LIMITS.lastingMs, 'it must be at most 365 days')

export const IDLE_ACTIONS = ['hibernate', 'kill'] as const

/** When a sandbox hibernates, stops or kills commands by itself; 0 is never. */
export const timeouts = z.strictObject({
  idle: lasting.optional().meta({
    description:
      "How long the sandbox may be idle before `onIdle` is done. It is not idle while a command or a job in the background runs, a client is attached or a preview connection is open. Services and terminals without clients do not count, unless they have keepAwake. Default: '5m'; 0: never.",
  }),
  execution: durationMs
    .refine((value) => value <= LIMITS.timeoutMs, 'a command runs at most 24h')
    .optional()
    .meta({
      description: 'For every command, job and piece of code without its own timeout. Default: 0, never.',
    }),
  paused: lasting.optional().meta({
    description: 'How long the sandbox may stay paused before it is stopped. Default: 0, for ever.',
  }),
  onIdle: z.enum(IDLE_ACTIONS).optional().meta({ description: 'Default: hibernate.' }),
})
export type Timeouts = z.input<typeof timeouts>
export type TimeoutsParsed = z.output<typeof timeouts>

export const timeoutsInfo = z.object({
  idleMs: z.number(),
  executionMs: z.number(),
  pausedMs: z.number(),
  onIdle: z.enum(IDLE_ACTIONS),
})
export type TimeoutsInfo = z.infer<typeof timeoutsInfo>
