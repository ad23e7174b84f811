import { z } from 'zod'
import { portNumber, timestamp } from './common.ts'

export const listeningPort = z.object({
  port: z.number(),
  address: z.string().meta({ description: '127.0.0.1, 0.0.0.0, ::1, :: ...' }),
  uid: z.number(),
  pid: z
    .number()
    .optional()
    .meta({ description: 'The process that listens, by its pid inside the sandbox; absent if unknown.' }),
})
export type ListeningPort = z.infer<typeof listeningPort>
export const portList = z.object({ ports: z.array(listeningPort) })

const domain = z
  .string()
  .max(253)
  .toLowerCase()
  .regex(/^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/, 'not a domain')

export const previewAuth = z.strictObject({
  type: z.literal('token'),
  token: z
    .string()
    .min(16)
    .max(512)
    .regex(/^[A-Za-z0-9._~-]+$/, 'a token has letters, digits and . _ ~ -')
    .optional()
    .meta({ description: 'Default: a random token, given in this answer only.' }),
})

export const createPreview = z.strictObject({
  port: portNumber,
  domain: domain.optional().meta({
    description: 'A name that points at this server and that no other preview has. Needs the API key.',
  }),
  authConfig: previewAuth.optional().meta({
    description:
      'Visitors need a token: as bearer, as ?islet_token= (which becomes a cookie), or as that cookie.',
  }),
  keep: z.boolean().optional().meta({
    description: 'Return an existing preview unchanged. Default: false, change it as requested.',
  }),
})
export type CreatePreview = z.input<typeof createPreview>
export type CreatePreviewParsed = z.output<typeof createPreview>

export const preview = z.object({
  sandboxId: z.string(),
  port: z.number(),
  url: z.string(),
  domain: z.string().optional(),
  authConfig: z.object({ type: z.literal('token') }).optional(),
  token: z.string().optional().meta({ description: 'Only in the answer to the request that set it.' }),
  createdAt: timestamp,
})
export type Preview = z.infer<typeof preview>
export const previewList = z.object({ previews: z.array(preview) })
