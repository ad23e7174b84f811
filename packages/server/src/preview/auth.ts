// Who may use a preview, and what of a request is for us alone. The program inside never sees our cookies, tokens or key.
import { hash, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { IsletError } from '@islet/contract'
import type { PreviewRecord } from '../db/previews.ts'
import type { AdminKey } from '../key.ts'
import { BEARER_PROTOCOL, bearerOf } from '../lib/bearer.ts'
import { markKnown } from '../listen/connections.ts'
import type { Tokens } from '../tokens.ts'

const COOKIE_PREFIX = 'islet_preview'
const QUERY_NAME = 'islet_token'

export interface Admission {
  /** The target of the request without our token. */
  path: string
  /** Headers, by their lower-case names, that are passed on otherwise than they came; undefined: not at all. */
  replaced: Record<string, string | undefined>
  /** To send with the answer, so that the token need not be in the next URL. */
  setCookie?: string
  /** Where a browser goes on with the cookie instead of the token in its address bar. */
  redirect?: string
}

interface PreviewAuthOptions {
  key: Pick<AdminKey, 'keyMatches'>
  tokens: Pick<Tokens, 'verify' | 'isOurs'>
  /** Whether a preview, whichever, has a token of this hash. */
  isPreviewToken(hash: string): boolean
}

export class PreviewAuth {
  readonly #options: PreviewAuthOptions

  constructor(options: PreviewAuthOptions) {
    this.#options = options
  }

  /** `unauthorized` unless this preview is open or the request brings what it asks for. */
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
      if (!isByCookie && !(await this.#isBearer(record, incoming))) {
        throw new IsletError('unauthorized', 'This preview asks for a token.', {
          hint: `Open it once with ?${QUERY_NAME}=TOKEN, or send Authorization: Bearer TOKEN.`,
        })
      }
      markKnown(incoming.socket)
      return admission
    }
    markKnown(incoming.socket)
    const setCookie = `${cookieName(record)}=${token}; Path=/; HttpOnly; SameSite=Lax${secure ? '; Secure' : ''}`
    return {
      ...admission,
      setCookie,
      ...(mayRedirect && isNavigation(incoming) && { redirect: sameHost(path) }),
    }
  }

  /** Of this preview, of its sandbox, or the admin key. */
  async #isBearer(record: PreviewRecord, { headers }: IncomingMessage): Promise<boolean> {
    const bearer = bearerOf(headers.authorization)
    if (bearer === undefined) return false
    if (matches(record, bearer) || this.#options.key.keyMatches(bearer)) return true
    const found = await this.#options.tokens.verify(bearer).catch(() => undefined)
    return found?.sandboxId === record.sandboxId
  }

  /** A key or token that the program must not see may be another preview's, another sandbox's, or of no use here at all. */
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
    const { key, tokens, isPreviewToken } = this.#options
    return key.keyMatches(text) || tokens.isOurs(text) || isPreviewToken(hash('sha256', text))
  }
}

/** Whatever the scheme: all that could be a key in it. */
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

/** A program inside must not replace what its visitors hold for this or another preview: a host's ports share cookies. */
export function isOurCookie(setCookie: string): boolean {
  return setCookie.trimStart().startsWith(COOKIE_PREFIX)
}

function cookieName({ sandboxId, port }: PreviewRecord): string {
  return `${COOKIE_PREFIX}_${port}_${sandboxId}`
}

function matches({ auth }: PreviewRecord, token: string): boolean {
  if (auth === null) return false
  return timingSafeEqual(hash('sha256', token, 'buffer'), Buffer.from(auth.hash, 'hex'))
}

/** Of an address, as of the page that a request came from. */
export function withoutToken(url: string): string {
  return takeTokens(url).path
}

/** The rest of the query stays as it was written. */
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
  if (!header?.includes(COOKIE_PREFIX)) return { ours: [], others: header }
  const all = header.split(';').map((cookie) => cookie.trim())
  const ours = all
    .filter((cookie) => cookie.startsWith(`${name}=`))
    .map((cookie) => cookie.slice(name.length + 1))
  const others = all.filter((cookie) => cookie !== '' && !cookie.startsWith(COOKIE_PREFIX)).join('; ')
  return { ours, others: others || undefined }
}

/**
 * Previews are neighbours: ports of one host, or names below one domain, where browsers send a cookie along with what the page of
 * one asks of another. Such a page may be a stranger's, so a cookie counts only for the preview's own pages. Scripts and images
 * are asked for without an Origin, and say by Sec-Fetch-Site that they are for another's page; whoever opens a page may come from anywhere.
 */
function isOfSameOrigin({ headers }: IncomingMessage): boolean {
  const site = headers['sec-fetch-site']
  const isOthers = site === 'same-site' || site === 'cross-site'
  if (isOthers && headers['sec-fetch-mode'] !== 'navigate') return false
  if (headers.origin === undefined) return true
  const origin = URL.parse(headers.origin)
  return origin !== null && origin.host === URL.parse(`${origin.protocol}//${headers.host}`)?.host
}

/** Programs that fetch have nowhere to keep a cookie: only a page that is opened is sent on. */
function isNavigation({ method, headers }: IncomingMessage): boolean {
  if (method !== 'GET' && method !== 'HEAD') return false
  const mode = headers['sec-fetch-mode']
  return mode === undefined ? (headers.accept ?? '').includes('text/html') : mode === 'navigate'
}

/** A Location that begins with two slashes, or what browsers take for them, would lead to another host. */
function sameHost(path: string): string {
  return /^\/[/\\]/.test(path) ? `/.${path}` : path
}
