import { z } from 'zod'

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
  sandboxes: z.number().meta({ description: 'Live ones.' }),
  warm: z
    .object({
      ready: z.number().meta({ description: 'That wait now.' }),
      target: z.number().meta({ description: 'That are to wait, by recent demand and free memory.' }),
      min: z.number(),
      max: z.number(),
    })
    .meta({ description: 'Shells that are started ahead; all 0 where `capabilities.lateRoot` is missing.' }),
  startedAt: z.iso.datetime(),
})
export type ServerInfo = z.infer<typeof serverInfo>
