import { z } from 'zod'
import { idPattern } from '../ids.ts'
import { LIMITS } from '../limits.ts'
import { parseCpuMillis, parseDurationMs, parseSizeBytes } from '../units.ts'

const encoder = new TextEncoder()
/** Whether the sandbox is kept from being idle. */
export const keepAwake = z.boolean()

export const byteLength = (text: string): number => encoder.encode(text).length

export const noNul = (text: string): boolean => !text.includes('\0')

export const sandboxId = z.string().regex(idPattern('sandbox'), 'not a sandbox id')
export const processId = z.string().regex(idPattern('process'), 'not a process id')

export const portNumber = z.number().int().min(1).max(65_535)

/** Absolute, or relative to the sandbox's working directory. */
export const sandboxPath = z
  .string()
  .min(1, 'a path must not be empty')
  .refine((path) => noNul(path) && byteLength(path) <= LIMITS.pathBytes, {
    message: `a path has at most ${LIMITS.pathBytes} bytes and no NUL`,
    params: { code: 'invalid_path' },
  })
  .meta({ description: 'Absolute, or relative to the working directory of the sandbox.' })

export const userName = z
  .string()
  .regex(
    /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,63})?$/,
    'a user is NAME, UID, NAME:GROUP or UID:GID',
  )

const envName = z
  .string()
  .refine((name) => name !== '' && !/[=\0]/.test(name) && byteLength(name) <= LIMITS.envNameBytes, {
    message: `the name of a variable has 1 to ${LIMITS.envNameBytes} bytes, no = and no NUL`,
  })
const envValue = z.string().refine((value) => noNul(value) && byteLength(value) <= LIMITS.envValueBytes, {
  message: `the value of a variable has at most ${LIMITS.envValueBytes} bytes and no NUL`,
})

const envFits = (env: Record<string, string | null>): boolean =>
  Object.keys(env).length <= LIMITS.envEntries &&
  Object.entries(env).reduce((sum, [name, value]) => sum + name.length + (value?.length ?? 0) + 2, 0) <=
    LIMITS.envBytes
const envMessage = `an environment has at most ${LIMITS.envEntries} variables and ${LIMITS.envBytes} bytes`

export const env = fewMembers(LIMITS.envEntries, z.record(envName, envValue).refine(envFits, envMessage))
/** A change of an environment: null removes a variable. */
export const envPatch = fewMembers(
  LIMITS.envEntries,
  z.record(envName, envValue.nullable()).refine(envFits, envMessage),
)

/** Refuses an object with more members without checking them: each check takes some microseconds. */
export function fewMembers<Schema extends z.ZodType>(most: number, schema: Schema) {
  return z.preprocess((value: z.input<Schema>, context) => {
    if (typeof value !== 'object' || value === null || Object.keys(value).length <= most) return value
    context.addIssue({ code: 'custom', message: `it has at most ${most} members`, input: value })
    return z.NEVER
  }, schema)
}

/** Why a value cannot be written as JSON, or not read by other JSON parsers; undefined if it can. */
export function jsonProblem(value: unknown, depth: number = LIMITS.jsonDepth): string | undefined {
  switch (typeof value) {
    case 'undefined':
      return 'there is no value'
    case 'number':
      return Number.isFinite(value) ? undefined : 'a number is too large'
    case 'object':
      break
    default:
      return undefined
  }
  if (value === null) return undefined
  if (depth === 0) return `arrays and objects may be nested at most ${LIMITS.jsonDepth} deep`
  for (const item of Array.isArray(value) ? value : Object.values(value)) {
    const problem = jsonProblem(item, depth - 1)
    if (problem !== undefined) return problem
  }
  return undefined
}

/** Any JSON, visited once. z.json() tries each type at every level: a hostile megabyte would take seconds. */
export const json = z.unknown().superRefine((value, context) => {
  const message = jsonProblem(value)
  if (message !== undefined) context.addIssue({ code: 'custom', message, input: value, continue: false })
}) as unknown as z.ZodType<z.core.util.JSONType, z.core.util.JSONType>

export const metadata = fewMembers(
  LIMITS.metadataMembers,
  z
    .record(z.string().min(1).max(LIMITS.nameLength), json)
    .refine(
      (value) => byteLength(JSON.stringify(value)) <= LIMITS.metadataBytes,
      `metadata has at most ${LIMITS.metadataBytes} bytes of JSON`,
    )
    .refine((value) => !holdsNul(value), 'metadata has no NUL'),
)

function holdsNul(value: unknown): boolean {
  if (typeof value === 'string') return !noNul(value)
  if (typeof value !== 'object' || value === null) return false
  return Object.entries(value).some(([name, item]) => !noNul(name) || holdsNul(item))
}

/** Input: a number of milliseconds or '30s'. Output: milliseconds. */
export const durationMs = quantity(
  parseDurationMs,
  "a duration is a number of milliseconds, or like '30s', '10m', '24h'",
)
/** Input: a number of bytes or '256Mi'. Output: bytes. */
export const sizeBytes = quantity(parseSizeBytes, "a size is a number of bytes, or like '256Mi', '1Gi'")
/** Input: a number of cores or '500m'. Output: thousandths of a core. */
export const cpuMillis = quantity(parseCpuMillis, "cpu is a number of cores, or like '500m'")

function quantity(parse: (value: number | string) => number | undefined, message: string) {
  return z.union([z.number(), z.string().max(32)]).transform((value, context) => {
    const parsed = parse(value)
    if (parsed !== undefined) return parsed
    context.addIssue({ code: 'custom', message, input: value })
    return z.NEVER
  })
}

/** Refuses an object whose encoding is base64 and whose text is not. */
export function checkBase64<Text extends string, Encoding extends string>(text: Text, encoding: Encoding) {
  return (value: { [Key in Text | Encoding]?: unknown }, context: z.RefinementCtx): void => {
    if (value[encoding] !== 'base64' || isBase64(String(value[text] ?? ''))) return
    context.addIssue({ code: 'custom', message: 'it is not valid base64', path: [text], input: value[text] })
  }
}

/** The number of bytes of a text, in UTF-8 or decoded from base64. */
export function decodedBytes(text: string, encoding: unknown): number {
  if (encoding !== 'base64') return byteLength(text)
  const padding = text.endsWith('==') ? 2 : text.endsWith('=') ? 1 : 0
  return Math.floor(((text.length - padding) * 3) / 4)
}

/** With or without padding. Searches for invalid characters: on megabytes of text that is faster than matching all of it. */
function isBase64(text: string): boolean {
  const bare = text.endsWith('==') ? text.slice(0, -2) : text.endsWith('=') ? text.slice(0, -1) : text
  const isPadded = bare.length < text.length
  return bare.length % 4 !== 1 && (!isPadded || text.length % 4 === 0) && !/[^A-Za-z0-9+/]/.test(bare)
}

/** '0644' or 420. */
export const fileMode = z.union([
  z.number().int().min(0).max(0o7777),
  z
    .string()
    .regex(/^[0-7]{1,5}$/, "a mode is octal, like '0644'")
    .transform((text) => Number.parseInt(text, 8) & 0o7777),
])

/** Query parameters are text: 'true', '1', 'false', '0'. */
export const queryBoolean = z
  .enum(['true', '1', 'false', '0', ''])
  .transform((text) => text === 'true' || text === '1' || text === '')
/** Query parameters are text. Only decimal digits: no other form of number that JavaScript accepts. */
export const queryInteger = (min: number, max: number) =>
  z.preprocess(
    (text) => (typeof text === 'string' && /^-?\d+$/.test(text) ? Number(text) : text),
    z.number().int().min(min).max(max),
  )

export const timestamp = z.iso.datetime()

// Of lists that are given page by page.
export const pageLimit = queryInteger(1, LIMITS.listPage).optional().meta({ description: 'Default: 100.' })
export const offset = queryInteger(0, LIMITS.listOffset)
  .optional()
  .meta({ description: 'Leave out this many from the beginning.' })
export const direction = z.enum(['asc', 'desc']).optional()
/** The cursor of an answer has its page's last name in it. */
const cursor = z.string().max(1024).optional().meta({ description: 'Of the last answer, for the next page.' })
export const pageFields = { limit: pageLimit, cursor, offset }
export const onePlace = (query: { cursor?: unknown; offset?: unknown }): boolean =>
  query.cursor === undefined || query.offset === undefined
export const ONE_PLACE = 'a page begins at a cursor or at an offset: leave one out'
export const total = z.number().meta({ description: 'How many there are, without limit and offset.' })
