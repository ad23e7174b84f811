import type { IncomingMessage, ServerResponse } from 'node:http'
import { type ErrorCode, IsletError, idPattern, isId, LIMITS, type Route } from '@islet/contract'
import { z } from 'zod'
import type { Held, Hold } from '../../control/held.ts'
import { byteStream, readJson } from './body.ts'
import { authorize, type Caller, callerOf } from './caller.ts'
import { parseQuery, refuseNul } from './query.ts'
import { clientSignal } from './request.ts'
import { validate } from './validate.ts'

/** A call of any route; route.ts has the exact type of each. */
interface AnyCall {
  params: Record<string, string>
  query: unknown
  body: unknown
  headers: IncomingMessage['headers']
  idempotencyKey: string | undefined
  caller: Caller | undefined
  isHead: boolean
  /** Counts the memory that the call uses. */
  held: Hold
  readonly signal: AbortSignal
}

/** Names of sandboxes. */
export interface Names {
  idOf(name: string): string | undefined
}

const NO_QUERY = z.strictObject({})
/** An id of the wrong form gets the same error as an unknown id. */
const IDS: Record<string, { pattern: RegExp; code: ErrorCode }> = {
  id: { pattern: idPattern('sandbox'), code: 'sandbox_not_found' },
  pid: { pattern: idPattern('process'), code: 'process_not_found' },
  tid: { pattern: idPattern('terminal'), code: 'terminal_not_found' },
  wid: { pattern: idPattern('watcher'), code: 'watcher_not_found' },
  cid: { pattern: idPattern('checkpoint'), code: 'checkpoint_not_found' },
  oid: { pattern: idPattern('overlay'), code: 'overlay_not_found' },
}

/** Reads and checks the call; the body is read last. */
export async function readCall(
  route: Route,
  given: Record<string, string>,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  sandboxes: Names & { held: Held },
): Promise<AnyCall> {
  const caller = callerOf(incoming)
  const params = readParams(given, caller, sandboxes)
  authorize(route, params, caller)
  const held = sandboxes.held.open(caller && caller.kind !== 'admin' ? caller.sandboxId : undefined)
  return {
    held,
    params,
    caller,
    query: readQuery(route, incoming),
    headers: incoming.headers,
    idempotencyKey: route.idempotent ? idempotencyKey(incoming) : undefined,
    isHead: incoming.method === 'HEAD',
    body: await readBody(route, incoming, outgoing, held),
    get signal() {
      // Made on demand: most calls do not need it.
      const signal = clientSignal(outgoing)
      Object.defineProperty(this, 'signal', { value: signal })
      return signal
    },
  }
}

/** Replaces the name of a sandbox by its id. With a token only the name of its own sandbox is known. */
export function readParams(
  given: Record<string, string>,
  caller: Caller | undefined,
  names: Names,
): Record<string, string> {
  if (given.id === undefined || isId('sandbox', given.id)) return checkParams(given)
  const id = names.idOf(given.id)
  const isKnown = caller?.kind === 'admin' || (caller?.kind === 'sandbox' && caller.sandboxId === id)
  return checkParams(id !== undefined && isKnown ? { ...given, id } : given)
}

function checkParams(params: Record<string, string>): Record<string, string> {
  for (const name in params) {
    const id = IDS[name]
    if (id && !id.pattern.test(params[name]!)) throw new IsletError(id.code)
  }
  return params
}

export function readQuery(route: Route, incoming: IncomingMessage): unknown {
  const query = parseQuery(incoming.url ?? '')
  const parsed = validate(route.query ?? NO_QUERY, query, 'query')
  refuseNul(query)
  return parsed
}

async function readBody(
  route: Route,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  hold: Hold,
): Promise<unknown> {
  if (route.body === undefined) return undefined
  if (route.body === 'bytes') return byteStream(incoming, outgoing)
  try {
    const value = await readJson(incoming, outgoing, { limit: route.bodyBytes, hold })
    return validate(route.body, value, 'body')
  } catch (error) {
    hold[Symbol.dispose]()
    throw error
  }
}

function idempotencyKey(incoming: IncomingMessage): string | undefined {
  const key = incoming.headers['idempotency-key']
  if (key === undefined) return undefined
  if (typeof key === 'string' && key.length <= LIMITS.idempotencyKeyLength && /^[\x21-\x7e]+$/.test(key))
    return key
  throw new IsletError(
    'invalid_header',
    `An Idempotency-Key has 1 to ${LIMITS.idempotencyKeyLength} visible ASCII characters.`,
  )
}
