import { z } from 'zod'
import { LIMITS } from '../limits.ts'
import { durationMs, noNul, timestamp } from './common.ts'

const lifetime = (most: number, text: string) =>
  durationMs.refine(
    (value) => value >= 1000 && value <= most,
    `a token must be valid for 1 second to ${text}`,
  )

export const createToken = z.strictObject({
  expiresIn: lifetime(LIMITS.tokenMs, '24 hours')
    .optional()
    .meta({ description: 'Milliseconds or like 30m. Default: one hour.' }),
})
export type CreateToken = z.input<typeof createToken>

/** A JWT that gives access to one sandbox only. */
export const sandboxToken = z.object({ token: z.string(), expiresAt: timestamp })
export type SandboxToken = z.infer<typeof sandboxToken>

export const createSessionToken = z.strictObject({
  description: z
    .string()
    .max(LIMITS.descriptionLength)
    .refine(noNul, 'a description has no NUL')
    .optional()
    .meta({ description: 'What it is for.' }),
  expiresIn: lifetime(LIMITS.sessionTokenMs, '365 days')
    .optional()
    .meta({ description: 'Milliseconds or like 30m. Default: 7 days.' }),
})
export type CreateSessionToken = z.input<typeof createSessionToken>
export type CreateSessionTokenParsed = z.output<typeof createSessionToken>

const sessionTokenFields = {
  id: z.string(),
  sandboxId: z.string(),
  description: z.string().nullable(),
  createdAt: timestamp,
  expiresAt: timestamp,
}

export const sessionToken = z.object({
  ...sessionTokenFields,
  token: z.string().meta({ description: 'In this answer only; the server keeps its hash.' }),
})
export type SessionToken = z.infer<typeof sessionToken>

export const sessionTokenInfo = z.object({
  ...sessionTokenFields,
  lastUsedAt: timestamp.nullable().meta({ description: 'Up to a minute old. Null: not used yet.' }),
})
export type SessionTokenInfo = z.infer<typeof sessionTokenInfo>
export const sessionTokenList = z.object({ tokens: z.array(sessionTokenInfo) })

/** Whoever asks: the page at /play/, or the holder of a token. */
export const session = z.object({
  sandboxId: z.string(),
  name: z.string().nullable().meta({ description: 'The name of the sandbox.' }),
  tokenId: z.string().nullable().meta({ description: 'Null: not a session token.' }),
  expiresAt: timestamp,
})
export type Session = z.infer<typeof session>

/** A path of this server, as browsers resolve it; undefined if they could resolve it to anything else. */
function ownPath(text: string): string | undefined {
  // Browsers read a backslash as a slash, and drop tabs and line breaks.
  if (!text.startsWith('/') || text.startsWith('//') || /[\\\p{Cc}]/u.test(text)) return undefined
  const base = 'http://server.invalid'
  const url = URL.parse(text, base)
  if (url?.origin !== base || url.username !== '' || url.pathname.startsWith('//')) return undefined
  return url.pathname + url.search + url.hash
}

const redirectUrl = z
  .string()
  .max(LIMITS.redirectLength)
  .transform((text, context) => {
    const path = ownPath(text)
    if (path !== undefined) return path
    context.addIssue({ code: 'custom', message: "a path of this server, like '/play/'", input: text })
    return z.NEVER
  })

export const createMagicLink = z.strictObject({
  redirectUrl: redirectUrl
    .optional()
    .meta({ description: 'The path of this server that the link leads to. Default: /play/.' }),
})
export type CreateMagicLink = z.input<typeof createMagicLink>
export type CreateMagicLinkParsed = z.output<typeof createMagicLink>

export const magicLink = z.object({
  url: z.string().meta({ description: 'Works once, and for five minutes. Whoever opens it gets in.' }),
  expiresAt: timestamp,
  redirectUrl: z.string(),
})
export type MagicLink = z.infer<typeof magicLink>
