import type { IncomingMessage } from 'node:http'
import { IsletError, ROUTES, type Route } from '@islet/contract'
import { BEARER_PROTOCOL, bearerOf } from '../../../lib/bearer.ts'
import { markKnown } from '../../../listen/connections.ts'
import { insideGate } from '../../inside/gate.ts'
import { PAGES } from '../../openapi/docs.ts'
import type { ApiDeps } from '../../route.ts'
import { type Caller, insideOf, setCaller } from '../caller.ts'
import { pathOf } from '../request.ts'
import type { Gate } from './host.ts'

const PROTOCOL = 'islet'

/** The pages are the same on every server, so anyone may read them. */
const OPEN_PATHS = new Set([
  ...PAGES.keys(),
  ...Object.values<Route>(ROUTES)
    .filter((route) => route.open)
    .map((route) => route.path),
])

/** Requires the admin key, or the token of a sandbox that is not stopped. Requests from inside a sandbox have rules of their own. */
export function keyGate({ key, tokens, sandboxes }: Pick<ApiDeps, 'key' | 'tokens' | 'sandboxes'>): Gate {
  const fromInside = insideGate(tokens)
  const callerOf = async (candidate: string): Promise<Caller> => {
    if (key.keyMatches(candidate)) return { kind: 'admin' }
    const { sandboxId } = await tokens.verify(candidate)
    // A token ends with its sandbox; afterwards only the API key can read the records.
    if (!sandboxes.isThere(sandboxId)) throw new IsletError('unauthorized')
    return { kind: 'sandbox', sandboxId }
  }
  return async (incoming) => {
    const origin = insideOf(incoming)
    if (origin) return fromInside(incoming, origin)
    if (OPEN_PATHS.has(pathOf(incoming))) return
    const candidate = bearerOf(incoming.headers.authorization) ?? protocolKeyOf(incoming)
    if (candidate === undefined) throw new IsletError('unauthorized')
    setCaller(incoming, await callerOf(candidate))
    markKnown(incoming.socket)
  }
}

/** Browsers expect one of the WebSocket protocols that they offered. */
export function chooseProtocol(offered: ReadonlySet<string>): string | false {
  if (offered.has(PROTOCOL)) return PROTOCOL
  return [...offered].find((protocol) => protocol.startsWith(BEARER_PROTOCOL)) ?? false
}

function protocolKeyOf(incoming: IncomingMessage): string | undefined {
  if (incoming.headers.upgrade === undefined) return undefined
  const offered = (incoming.headers['sec-websocket-protocol'] ?? '').split(',').map((text) => text.trim())
  return offered.find((text) => text.startsWith(BEARER_PROTOCOL))?.slice(BEARER_PROTOCOL.length)
}
