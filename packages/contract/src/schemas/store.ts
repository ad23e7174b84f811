import { z } from 'zod'
import { LIMITS } from '../limits.ts'
import { byteLength, jsonProblem, queryInteger, timestamp } from './common.ts'

// The field names, like ttl_seconds and expires_at, are those of the store's published interface.

export const storeKey = z
  .string()
  .min(1, 'a key must not be empty')
  .refine((key) => key.isWellFormed(), 'a key must be valid Unicode')
  .refine((key) => fits(key, LIMITS.storeKeyBytes), `a key has at most ${LIMITS.storeKeyBytes} bytes`)

/** Input: any JSON. Output: its text, which is stored. */
const jsonText = z
  .unknown()
  .transform((value, context): string => {
    const problem = jsonProblem(value)
    const text = problem === undefined ? JSON.stringify(value) : ''
    if (problem === undefined && fits(text, LIMITS.storeValueBytes)) return text
    const message = problem ?? `a value has at most ${LIMITS.storeValueBytes} bytes of JSON`
    context.addIssue({ code: 'custom', message, input: value })
    return z.NEVER
  })
  .meta({ description: `Any JSON, null too, of at most ${LIMITS.storeValueBytes} bytes.` })
const json = z
  .unknown()
  .refine((value): boolean => value !== undefined, 'there is no value')
  .meta({ description: 'Any JSON.' })
const ttl = z
  .number()
  .positive('ttl_seconds must be a positive number')
  .max(LIMITS.storeTtlSeconds)
  .optional()
  .meta({ description: 'Default: no expiry.' })

export const setStore = z.strictObject({ value: jsonText, ttl_seconds: ttl })
export type SetStore = z.input<typeof setStore>
export type SetStoreParsed = z.output<typeof setStore>
export const storeEntry = z.object({ value: json, expires_at: timestamp.nullable() })
export type StoreEntry = z.infer<typeof storeEntry>
export const storeSet = z.object({ ok: z.literal(true), expires_at: timestamp.nullable() })
export type StoreSet = z.infer<typeof storeSet>
export const storeDeleted = z.object({ deleted: z.boolean(), ok: z.literal(true) })
export type StoreDeleted = z.infer<typeof storeDeleted>

export const listStore = z.strictObject({
  prefix: z
    .string()
    .refine((text) => fits(text, LIMITS.storeKeyBytes), `a key has at most ${LIMITS.storeKeyBytes} bytes`)
    .optional(),
  limit: queryInteger(1, LIMITS.storeListKeys).optional().meta({ description: 'Default: 100.' }),
  cursor: z
    .string()
    .max(1024)
    .optional()
    .meta({ description: 'Of the last answer: only the keys after that answer.' }),
})
export type ListStoreParsed = z.output<typeof listStore>
export const storeKeys = z.object({
  keys: z.array(z.string()),
  truncated: z.boolean().meta({ description: 'True if there are more keys.' }),
  cursor: z.string().optional().meta({ description: 'Only if truncated.' }),
})
export type StoreKeys = z.infer<typeof storeKeys>

const setOperation = z.strictObject({
  op: z.literal('set'),
  key: storeKey,
  value: jsonText,
  ttl_seconds: ttl,
})
const deleteOperation = z.strictObject({ op: z.literal('delete'), key: storeKey })
const getOperation = z.strictObject({ op: z.literal('get'), key: storeKey })

export const storeOperation = z.discriminatedUnion('op', [setOperation, deleteOperation])
export type StoreOperation = z.input<typeof storeOperation>
export type StoreOperationParsed = z.output<typeof storeOperation>
export const storeBatch = z.strictObject({
  // Only one element beyond the limit is checked: enough to refuse a list that is too long.
  operations: z.preprocess(
    (value) => (Array.isArray(value) ? value.slice(0, LIMITS.storeBatch + 1) : value),
    z.array(storeOperation).max(LIMITS.storeBatch),
  ),
})
export const storeBatchResult = z.object({ applied: z.number(), ok: z.literal(true) })
export type StoreBatchResult = z.infer<typeof storeBatchResult>

/** Get, set or delete with the key in the body: no URL can end in the keys `.` and `..`. */
export const storeKeyOperation = z.discriminatedUnion('op', [getOperation, setOperation, deleteOperation])
export type StoreKeyOperation = z.input<typeof storeKeyOperation>
export type StoreKeyOperationParsed = z.output<typeof storeKeyOperation>
export const storeKeyResult = z.union([storeEntry, storeSet, storeDeleted])

/** A JavaScript character has at most three bytes in UTF-8, so most texts need not be encoded to be measured. */
function fits(text: string, bytes: number): boolean {
  return text.length * 3 <= bytes || (text.length <= bytes && byteLength(text) <= bytes)
}
