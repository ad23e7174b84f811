import type { IncomingMessage } from 'node:http'
import { IsletError, ROUTES, type Route } from '@islet/contract'
import { sessionOf } from '../../../access/cookie.ts'
import { BEARER_PROTOCOL, bearerOf } from '../../../lib/bearer.ts'
import { markKnown } from '../../../listen/connections.ts'
import { insideGate } from '../../inside/gate.ts'
import { PAGES } from '../../pages.ts'
import type { ApiDeps } from '../../route.ts'
import { insideOf, setCaller } from '../caller.ts'
import { pathOf } from '../request.ts'
import type { Gate } from './host.ts'

const PROTOCOL = 'islet'

type KeyGateOptions = Pick<ApiDeps, 'credentials' | 'tokens' | 'config'>

const OPEN_ROUTES = Object.values<Route>(ROUTES)
  .filter((route) => route.open)
  .map(({ path }) => path)
/** The pages are the same on every server, so anyone may read them. */
const OPEN_PATHS = new Set([...PAGES.keys(), ...OPEN_ROUTES])
/** Of routes that end in a parameter. */
const OPEN_PREFIXES = OPEN_ROUTES.filter((path) => path.includes('{')).map((path) =>
  path.slice(0, path.indexOf('{')),
)

/**
 * Requires the admin key, or a token of a sandbox that is not stopped, in a header or in the cookie of our own page. Requests from inside
 * a sandbox have rules of their own.
 */
export function keyGate({ credentials, tokens, config }: KeyGateOptions): Gate {
  const fromInside = insideGate(tokens)
  return async (incoming) => {
    const origin = insideOf(incoming)
    if (origin) return fromInside(incoming, origin)
    if (isOpen(pathOf(incoming))) return
    const { authorization } = incoming.headers
    const shown = bearerOf(authorization) ?? protocolKeyOf(incoming)
    const candidate = shown ?? (authorization === undefined ? sessionOf(incoming, config) : undefined)
    if (candidate === undefined) throw new IsletError('unauthorized')
    setCaller(incoming, await credentials.holderOf(candidate))
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

function isOpen(path: string): boolean {
  return OPEN_PATHS.has(path) || OPEN_PREFIXES.some((prefix) => path.startsWith(prefix))
}
