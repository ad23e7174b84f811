// Tokens of one sandbox, magic links, and the session of the page at /play/.
import type { IncomingHttpHeaders } from 'node:http'
import { Readable } from 'node:stream'
import { DEFAULTS, IsletError } from '@islet/contract'
import { addressOf, removeCookie, setCookie } from '../../access/cookie.ts'
import type { Holder } from '../../access/credentials.ts'
import { assertReachable } from '../../access/sessions.ts'
import { MESSAGE_PAGE_HEADERS, messagePage } from '../../lib/message-page.ts'
import { type Caller, ownSandbox } from '../http/caller.ts'
import { type ApiDeps, Bytes, type Handlers } from '../route.ts'

export function tokenRoutes({ sandboxes, tokens, sessions, links, config }: ApiDeps) {
  return {
    createToken: ({ params, body }) => {
      assertReachable(sandboxes, params.id)
      return tokens.issue(params.id, { lifetimeMs: body.expiresIn })
    },
    createSessionToken: ({ params, body }) => sessions.create(params.id, body),
    listSessionTokens: ({ params }) => ({ tokens: sessions.list(params.id) }),
    getSessionToken: ({ params }) => sessions.get(params.id, params.tokenId),
    revokeSessionToken: ({ params }) => sessions.revoke(params.id, params.tokenId),
    createMagicLink: ({ params, body, headers }) => {
      const { secret, ...link } = links.create(params.id, body)
      return { ...link, url: `${addressOf(config, headers.host)}/auth/magic/${secret}` }
    },
    openMagicLink: ({ params, headers, isHead }) => {
      try {
        if (isHead) {
          links.find(params.secret)
          return new Bytes(undefined, {}, 200)
        }
        const { token, redirectUrl } = links.use(params.secret)
        const base = new URL(addressOf(config, headers.host)).pathname.replace(/\/$/, '')
        return new Bytes(
          undefined,
          {
            Location: base + redirectUrl,
            'Set-Cookie': setCookie(config, token, DEFAULTS.sessionTokenMs),
            'Referrer-Policy': 'no-referrer',
            'Content-Length': 0,
          },
          303,
        )
      } catch (error) {
        return asPage(error, headers)
      }
    },
    getSession: ({ caller }) => {
      const { sandboxId, expiresAt, session } = holderOf(caller)
      const { name } = sandboxes.record(sandboxId)
      return { sandboxId, name, tokenId: session?.id ?? null, expiresAt: new Date(expiresAt).toISOString() }
    },
    endSession: ({ caller }) => {
      const { sandboxId, session } = holderOf(caller)
      if (!session)
        throw new IsletError('not_supported', 'This token cannot be revoked; it expires.', {
          hint: 'A session token can be revoked: POST /v1/sandboxes/{id}/tokens makes one.',
        })
      sessions.revoke(sandboxId, session.id)
      return new Bytes(undefined, { 'Set-Cookie': removeCookie(config) }, 204)
    },
  } satisfies Partial<Handlers>
}

/** Throws unless the caller has a token of a sandbox. */
function holderOf(caller: Caller | undefined): Holder & { kind: 'sandbox' } {
  if (caller?.kind === 'sandbox') return caller
  ownSandbox(caller)
  throw new IsletError('forbidden')
}

/** The error as a page, if a browser shows it. */
function asPage(error: unknown, { accept = '' }: IncomingHttpHeaders): Bytes {
  if (!(error instanceof IsletError) || !accept.includes('text/html')) throw error
  const page = messagePage({ title: error.message, hint: error.hint, foot: `${error.status} · Islet` })
  return new Bytes(Readable.from([Buffer.from(page)]), MESSAGE_PAGE_HEADERS, error.status)
}
