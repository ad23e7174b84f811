// Requests from inside a sandbox reach only that sandbox's signals and store; the store needs the sandbox's store token. No other key
// or token is accepted here, and the store token is accepted nowhere else.
import { timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { IsletError } from '@islet/contract'
import { bearerOf } from '../../lib/bearer.ts'
import type { Tokens } from '../../tokens.ts'
import { notFromInside, type Origin, setCaller } from '../http/caller.ts'
import { pathOf } from '../http/request.ts'

/** The paths of the `ofCaller` routes. Each route checks again; this also refuses the pages and unknown paths. */
const REACHABLE = /^\/v1\/(signals|store)(\/|$)/

export function insideGate(tokens: Tokens): (incoming: IncomingMessage, origin: Origin) => Promise<void> {
  return async (incoming, origin) => {
    if (!REACHABLE.test(pathOf(incoming))) throw notFromInside()
    const { authorization } = incoming.headers
    if (authorization !== undefined) await verify(bearerOf(authorization) ?? '', origin)
    const { sandboxId } = origin
    setCaller(incoming, { kind: 'inside', sandboxId, hasToken: authorization !== undefined })
  }

  async function verify(token: string, origin: Origin): Promise<void> {
    if (origin.knownToken !== undefined && isSame(token, origin.knownToken)) return
    const { sandboxId } = await tokens.verifyInside(token)
    if (sandboxId !== origin.sandboxId) throw new IsletError('unauthorized')
    origin.knownToken = token
  }
}

function isSame(one: string, other: string): boolean {
  return one.length === other.length && timingSafeEqual(Buffer.from(one), Buffer.from(other))
}
