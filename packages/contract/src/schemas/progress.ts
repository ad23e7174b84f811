import { z } from 'zod'

/**
 * Long work answers with one of these per line (application/x-ndjson); the last one is done or error. Empty lines in between keep the
 * connection alive.
 */
export function progressOf<Name extends string, Result extends z.ZodType>(name: Name, result: Result) {
  return z.discriminatedUnion('type', [
    z.object({
      type: z.literal('progress'),
      stage: z.string(),
      message: z.string(),
      fraction: z.number().optional(),
    }),
    z.object({ type: z.literal('done'), [name]: result } as { type: z.ZodLiteral<'done'> } & Record<
      Name,
      Result
    >),
    z.object({
      type: z.literal('error'),
      error: z.object({
        code: z.string(),
        message: z.string(),
        hint: z.string().optional(),
        retryable: z.boolean(),
        details: z.record(z.string(), z.unknown()).optional(),
      }),
    }),
  ])
}
