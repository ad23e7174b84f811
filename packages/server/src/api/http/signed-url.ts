// URLs that hold a grant: who has one needs no key. One that a session token made ends with that token.
import type { IncomingHttpHeaders } from 'node:http'
import { IsletError } from '@islet/contract'
import { addressOf } from '../../access/cookie.ts'
import type { Grants, Tokens } from '../../tokens.ts'
import type { ApiDeps } from '../route.ts'
import type { Caller } from './caller.ts'

interface Signing<Kind extends keyof Grants> {
  kind: Kind
  grant: Grants[Kind]
  lifetimeMs: number
  /** Path of the route that takes the URL. */
  path: string
}

/** A call with such a URL. */
export interface GrantedCall {
  query: { grant: string }
  endWithToken(sandboxId: string, tokenId: string): void
}

/** It begins with the address that was asked. */
export function signedUrl<Kind extends keyof Grants>(
  { tokens, config }: Pick<ApiDeps, 'tokens' | 'config'>,
  { kind, grant, lifetimeMs, path }: Signing<Kind>,
  { headers, caller }: { headers: IncomingHttpHeaders; caller: Caller | undefined },
): { url: string; expiresAt: string } {
  const session = caller?.kind === 'sandbox' ? caller.session : undefined
  const left = session ? session.expiresAt - Date.now() : Number.POSITIVE_INFINITY
  const owned = { ...grant, tokenId: session?.id }
  const issued = tokens.issueGrant(kind, owned, { lifetimeMs: Math.min(lifetimeMs, left) })
  const url = `${addressOf(config, headers.host)}${path}?grant=${issued.grant}`
  return { url, expiresAt: issued.expiresAt }
}

/** `renewal`: the route that makes a new URL. */
export async function granted<Kind extends keyof Grants>(
  tokens: Tokens,
  kind: Kind,
  { query, endWithToken }: GrantedCall,
  renewal: string,
): Promise<Grants[Kind]> {
  try {
    const grant = await tokens.verifyGrant(kind, query.grant)
    if (grant.tokenId !== undefined) endWithToken(grant.sandboxId, grant.tokenId)
    return grant
  } catch (error) {
    if (!(error instanceof IsletError)) throw error
    const isLate = error.code === 'token_expired'
    const message = isLate
      ? 'This URL has expired.'
      : 'This server did not sign this URL, or the token that made it was revoked.'
    throw new IsletError(error.code, message, { hint: `POST ${renewal} makes a new one.` })
  }
}
