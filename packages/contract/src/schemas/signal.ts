import { z } from 'zod'
import { LIMITS } from '../limits.ts'
import { byteLength, json, portNumber } from './common.ts'

const url = z.string().max(2048)
const custom = z
  .string()
  .regex(/^[a-z][a-z0-9._:-]{0,127}$/, 'a signal has lower-case letters, digits and . _ : -')
  .refine(
    (name) => !['port', 'server-ready', 'error'].includes(name),
    'this name is reserved for a signal with other fields',
  )

/** A live message about a sandbox, sent to all connected clients. */
export const signalEvent = z.union([
  z.strictObject({
    signal: z.literal('port'),
    port: portNumber,
    type: z.enum(['open', 'close']),
    url,
  }),
  z.strictObject({ signal: z.literal('server-ready'), port: portNumber, url }),
  z.strictObject({ signal: z.literal('error'), message: z.string().max(LIMITS.signalBytes) }),
  z.strictObject({
    signal: custom,
    data: json
      .optional()
      .refine(
        (data) => data === undefined || byteLength(JSON.stringify(data)) <= LIMITS.signalBytes,
        `data has at most ${LIMITS.signalBytes} bytes of JSON`,
      ),
  }),
])
export type SignalEvent = z.infer<typeof signalEvent>

export const signalStatus = z.object({
  status: z.enum(['active', 'stopped']),
  channel: z.string().meta({ description: 'The path of the WebSocket.' }),
  wsUrl: z.string(),
})
export type SignalStatus = z.infer<typeof signalStatus>

/** WS .../signals: the server's text frames. */
export const signalMessage = z.discriminatedUnion('type', [
  z.object({ type: z.literal('start') }),
  z.object({ type: z.literal('signal'), event: signalEvent }),
  z
    .object({ type: z.literal('overflow') })
    .meta({ description: 'This client was too slow: signals were lost.' }),
  z.object({ type: z.literal('exit') }).meta({ description: 'Signals were stopped.' }),
  z.object({ type: z.literal('error'), error: z.object({ code: z.string(), message: z.string() }) }),
])
export type SignalMessage = z.infer<typeof signalMessage>
