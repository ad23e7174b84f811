// Decides whether a visitor may use a preview, and removes our cookies, tokens and keys from the request: the program inside never
// sees them.
import { hash, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { IsletError } from '@islet/contract'
import { SESSION_COOKIE } from '../access/cookie.ts'
import type { Credentials, Holder } from '../access/credentials.ts'
import type { PreviewRecord } from '../db/previews.ts'
import { BEARER_PROTOCOL, bearerOf } from '../lib/bearer.ts'
import { markKnown } from '../listen/connections.ts'

const COOKIE_PREFIX = 'islet_preview'
const QUERY_NAME = 'islet_token'

export interface Admission {
  /** The request target without our token. */
  path: string
  /** Headers to replace, by lower-case name; undefined removes the header. */
  replaced: Record<string, string | undefined>
  /** Sent with the answer, so that the next URL needs no token. */
  setCookie?: string
  /** Where the browser is redirected, so that the token leaves its address bar. */
  redirect?: string
  /** Whose token admitted the visitor, if it was a token of the sandbox. */
  holder?: Holder
}

interface PreviewAuthOptions {
  credentials: Pick<Credentials, 'holderOf' | 'isOurs'>
  /** Whether any preview has a token with this hash. */
  isPreviewToken(hash: string): boolean
}

export class PreviewAuth {
  readonly #options: PreviewAuthOptions

  constructor(options: PreviewAuthOptions) {
    this.#options = options
  }

  /** Throws `unauthorized` unless the preview is open or the request has a valid token. */
  async admit(
    record: PreviewRecord,
    incoming: IncomingMessage,
    { secure, mayRedirect }: { secure: boolean; mayRedirect: boolean },
  ): Promise<Admission> {
    const { path, tokens } = takeTokens(incoming.url!)
    const cookies = takeCookies(incoming.headers.cookie, cookieName(record))
    const admission = { path, replaced: { cookie: cookies.others, ...this.#withoutOurs(incoming) } }
    if (record.auth === null) return admission
    const isToken = (text: string): boolean => matches(record, text)
    const token = tokens.find(isToken)
    if (token === undefined) {
      const isByCookie = isOfSameOrigin(incoming) && cookies.ours.some(isToken)
      const holder = isByCookie ? 'visitor' : await this.#holder(record, incoming)
      if (holder === undefined) {
        throw new IsletError('unauthorized', 'This preview asks for a token.', {
          hint: `Open it once with ?${QUERY_NAME}=TOKEN, or send Authorization: Bearer TOKEN.`,
        })
      }
      markKnown(incoming.socket)
      return holder === 'visitor' ? admission : { ...admission, holder }
    }
    markKnown(incoming.socket)
    const setCookie = `${cookieName(record)}=${token}; Path=/; HttpOnly; SameSite=Lax${secure ? '; Secure' : ''}`
    return {
      ...admission,
      setCookie,
      ...(mayRedirect && isNavigation(incoming) && { redirect: sameHost(path) }),
    }
  }

  /** The bearer may be the preview's token, a token of its sandbox, or the admin key. */
  async #holder(
    record: PreviewRecord,
    { headers }: IncomingMessage,
  ): Promise<Holder | 'visitor' | undefined> {
    const bearer = bearerOf(headers.authorization)
    if (bearer === undefined) return undefined
    if (matches(record, bearer)) return 'visitor'
    const holder = await this.#options.credentials.holderOf(bearer).catch(() => undefined)
    return holder?.kind === 'admin' || holder?.sandboxId === record.sandboxId ? holder : undefined
  }

  /** Removes every key or token of this server, also those of other previews and sandboxes. */
  #withoutOurs({ headers }: IncomingMessage): Admission['replaced'] {
    const { authorization, 'sec-websocket-protocol': protocols } = headers
    const replaced: Admission['replaced'] = {}
    if (authorization !== undefined && credentialsIn(authorization).some((text) => this.#isOurs(text)))
      replaced.authorization = undefined
    if (protocols !== undefined) {
      const offered = protocols.split(',').map((text) => text.trim())
      const others = offered.filter((text) => !text.startsWith(BEARER_PROTOCOL) && !this.#isOurs(text))
      if (others.length < offered.length) replaced['sec-websocket-protocol'] = others.join(', ') || undefined
    }
    return replaced
  }

  #isOurs(text: string): boolean {
    return this.#options.credentials.isOurs(text) || this.#options.isPreviewToken(hash('sha256', text))
  }
}

/** Every part of the header that could be a key, whatever the scheme. */
function credentialsIn(authorization: string): string[] {
  const parts = authorization.split(/[\s,]+/)
  const isBasic = parts[0]!.toLowerCase() === 'basic'
  const pairs = isBasic
    ? Buffer.from(parts[1] ?? '', 'base64')
        .toString('latin1')
        .split(':')
    : []
  return [...parts, ...pairs].filter((text) => text !== '')
}

/** A program inside must not set our cookies: all ports of one host share them. Browsers send `=NAME=value` back as `NAME=value`. */
export function isOurCookie(setCookie: string): boolean {
  return isOurs(setCookie.replace(/^[\s=]+/, ''))
}

function isOurs(cookie: string): boolean {
  return cookie.startsWith(COOKIE_PREFIX) || cookie.startsWith(SESSION_COOKIE)
}

function cookieName({ sandboxId, port }: PreviewRecord): string {
  return `${COOKIE_PREFIX}_${port}_${sandboxId}`
}

function matches({ auth }: PreviewRecord, token: string): boolean {
  if (auth === null) return false
  return timingSafeEqual(hash('sha256', token, 'buffer'), Buffer.from(auth.hash, 'hex'))
}

/** For the Referer header. */
export function withoutToken(url: string): string {
  return takeTokens(url).path
}

/** Leaves the rest of the query unchanged. */
function takeTokens(url: string): { path: string; tokens: string[] } {
  const at = url.indexOf('?')
  if (at === -1) return { path: url, tokens: [] }
  const tokens: string[] = []
  const others = url
    .slice(at + 1)
    .split('&')
    .filter((part) => {
      const [name, value] = [...new URLSearchParams(part)][0] ?? []
      if (name !== QUERY_NAME) return true
      tokens.push(value ?? '')
      return false
    })
  if (tokens.length === 0) return { path: url, tokens }
  const query = others.join('&')
  return { path: url.slice(0, at) + (query && `?${query}`), tokens }
}

function takeCookies(
  header: string | undefined,
  name: string,
): { ours: string[]; others: string | undefined } {
  if (!header?.includes(COOKIE_PREFIX) && !header?.includes(SESSION_COOKIE))
    return { ours: [], others: header }
  const all = header.split(';').map((cookie) => cookie.trim())
  const ours = all
    .filter((cookie) => cookie.startsWith(`${name}=`))
    .map((cookie) => cookie.slice(name.length + 1))
  const others = all.filter((cookie) => cookie !== '' && !isOurs(cookie)).join('; ')
  return { ours, others: others || undefined }
}

/**
 * Previews share a host or a parent domain, so browsers send the cookie of one preview with requests from the page of another. That page
 * may be hostile, so the cookie counts only for the preview's own pages. Scripts and images have no Origin, but Sec-Fetch-Site shows that
 * another page loads them. Opening a page (navigation) is allowed from anywhere.
 */
function isOfSameOrigin({ headers }: IncomingMessage): boolean {
  const site = headers['sec-fetch-site']
  const isOthers = site === 'same-site' || site === 'cross-site'
  if (isOthers && headers['sec-fetch-mode'] !== 'navigate') return false
  if (headers.origin === undefined) return true
  const origin = URL.parse(headers.origin)
  return origin !== null && origin.host === URL.parse(`${origin.protocol}//${headers.host}`)?.host
}

/** Only a page that is opened is redirected: other clients may not keep cookies. */
function isNavigation({ method, headers }: IncomingMessage): boolean {
  if (method !== 'GET' && method !== 'HEAD') return false
  const mode = headers['sec-fetch-mode']
  return mode === undefined ? (headers.accept ?? '').includes('text/html') : mode === 'navigate'
}

/** A Location that begins with two slashes, or what browsers take for them, would lead to another host. */
function sameHost(path: string): string {
  return /^\/[/\\]/.test(path) ? `/.${path}` : path
}
