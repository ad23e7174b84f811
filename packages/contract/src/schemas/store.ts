import { z } from 'zod'
import { LIMITS } from '../limits.ts'
import { byteLength, queryInteger, timestamp } from './common.ts'

// Field names of the store are those of its published interface, hence ttl_seconds and expires_at.

export const storeKey = z
  .string()
  .min(1, 'a key is not empty')
  .refine((key) => byteLength(key) <= LIMITS.storeKeyBytes, `a key has at most ${LIMITS.storeKeyBytes} bytes`)

const value = z
  .json()
  .refine(
    (json) => byteLength(JSON.stringify(json)) <= LIMITS.storeValueBytes,
    `a value has at most ${LIMITS.storeValueBytes} bytes of JSON`,
  )
const ttl = z
  .number()
  .positive('ttl_seconds is a positive number')
  .max(LIMITS.storeTtlSeconds)
  .optional()
  .meta({ description: 'Default: no expiry.' })

export const setStore = z.strictObject({ value, ttl_seconds: ttl })
export type SetStore = z.input<typeof setStore>
export const storeEntry = z.object({ value: z.json(), expires_at: timestamp.nullable() })
export type StoreEntry = z.infer<typeof storeEntry>
export const storeSet = z.object({ ok: z.literal(true), expires_at: timestamp.nullable() })
export const storeDeleted = z.object({ deleted: z.boolean(), ok: z.literal(true) })

export const listStore = z.strictObject({
  prefix: z.string().max(LIMITS.storeKeyBytes).optional(),
  limit: queryInteger(1, LIMITS.storeListKeys).optional().meta({ description: 'Default: 100.' }),
})
export const storeKeys = z.object({ keys: z.array(z.string()), truncated: z.boolean() })
export type StoreKeys = z.infer<typeof storeKeys>

export const storeOperation = z.discriminatedUnion('op', [
  z.strictObject({ op: z.literal('set'), key: storeKey, value, ttl_seconds: ttl }),
  z.strictObject({ op: z.literal('delete'), key: storeKey }),
])
export type StoreOperation = z.input<typeof storeOperation>
export const storeBatch = z.strictObject({ operations: z.array(storeOperation).max(LIMITS.storeBatch) })
export const storeBatchResult = z.object({ applied: z.number(), ok: z.literal(true) })
