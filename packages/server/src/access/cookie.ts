// The cookie of the page at /play/, which a magic link sets. docs/decisions/cookie.md says when it counts, and why.
import type { IncomingMessage } from 'node:http'
import { IsletError } from '@islet/contract'
import type { Config } from '../config.ts'

export const SESSION_COOKIE = 'islet_session'
/** Pages of other origins need a preflight for it, which they do not get. */
const PAGE_HEADER = 'x-islet-page'
const READS = new Set(['GET', 'HEAD'])

type Where = Pick<Config, 'publicUrl' | 'tlsCert'>

/** The address by which a client reaches this server, without a slash at its end. */
export function addressOf({ publicUrl, tlsCert }: Where, host: string | undefined): string {
  return publicUrl ?? `${tlsCert === undefined ? 'http' : 'https'}://${host}`
}

/** Strict: pages of other sites cannot send it. The page itself needs no cookie, so it can be opened from anywhere. */
export function setCookie(where: Where, value: string, maxAgeMs: number): string {
  const secure = addressOf(where, undefined).startsWith('https:') ? '; Secure' : ''
  const maxAge = Math.floor(maxAgeMs / 1000)
  return `${SESSION_COOKIE}=${value}; Path=/; HttpOnly; SameSite=Strict; Max-Age=${maxAge}${secure}`
}

export function removeCookie(where: Where): string {
  return setCookie(where, '', 0)
}

/** The session token in the cookie of a request that our own page sent; undefined without one. */
export function sessionOf(incoming: IncomingMessage, where: Where): string | undefined {
  const values = valuesOf(incoming.headers.cookie)
  const [value] = values
  if (value === undefined) return undefined
  // A page at another port of this host can add one of its own, but cannot replace ours.
  if (values.size > 1)
    throw new IsletError('unauthorized', `The request has several cookies ${SESSION_COOKIE}.`, {
      hint: 'Another page of this host has set one: remove the cookies of this host.',
    })
  if (isOwnPage(incoming, where)) return value
  throw new IsletError('unauthorized', 'The cookie of a magic link is only for the page at /play/.', {
    hint: 'Programs send Authorization: Bearer TOKEN.',
  })
}

function valuesOf(header: string | undefined): Set<string> {
  const values = new Set<string>()
  if (!header?.includes(SESSION_COOKIE)) return values
  for (const cookie of header.split(';')) {
    const at = cookie.indexOf('=')
    if (cookie.slice(0, at).trim() === SESSION_COOKIE) values.add(cookie.slice(at + 1).trim())
  }
  return values
}

/**
 * Browsers send cookies to all ports of a host, and previews show hostile pages at other ports. Those cannot fake Origin or Sec-Fetch-Site,
 * and cannot send the header of our page.
 */
function isOwnPage({ method = '', headers }: IncomingMessage, where: Where): boolean {
  const { origin, host, 'sec-fetch-site': site } = headers
  if (site !== undefined && site !== 'same-origin') return false
  if (origin !== undefined && origin !== URL.parse(addressOf(where, host))?.origin) return false
  const isRead = READS.has(method) && headers.upgrade === undefined
  return isRead ? headers[PAGE_HEADER] !== undefined : origin !== undefined
}
