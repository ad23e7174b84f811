// Selects the headers that are passed on. Names and values come from Node's strict parser, so none contains a line break.
import type { IncomingMessage } from 'node:http'
import { AUTO_RESUMED } from '@islet/contract'
import { type Admission, isOurCookie, withoutToken } from './auth.ts'

/** Headers about one connection, not about the message. */
const HOP_BY_HOP = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'http2-settings',
])
/** The proxy sets these itself: a visitor must not be able to fake them. */
const FORWARDED = /^(forwarded|x-real-ip|x-forwarded-.*)$/
/** Not allowed as trailers: they would change the meaning of the head. */
const NOT_TRAILERS = /^(content-.*|host|authorization|cookie|set-cookie|cache-control|expect|range|location)$/

export interface Forwarded {
  scheme: 'http' | 'https'
  /** For a request without a Host: HTTP/1.0. */
  defaultHost: string
}

/** Headers that the proxy adds to the program's answer. */
export interface Added {
  setCookie: string | undefined
  autoResumed: boolean
}

export function requestHeaders(
  incoming: IncomingMessage,
  { replaced, upgrade }: Pick<Admission, 'replaced'> & { upgrade: string | undefined },
  forwarded: Forwarded,
): string[] {
  const host = incoming.headers.host ?? forwarded.defaultHost
  const headers = ['Host', host]
  for (const [name, value, lower] of endToEnd(incoming)) {
    if (lower === 'host' || lower in replaced || FORWARDED.test(lower)) continue
    headers.push(name, lower === 'referer' ? withoutToken(value) : value)
  }
  for (const [name, value] of Object.entries(replaced)) if (value !== undefined) headers.push(name, value)
  headers.push('X-Forwarded-For', incoming.socket.remoteAddress ?? 'unknown')
  headers.push('X-Forwarded-Proto', forwarded.scheme, 'X-Forwarded-Host', host)
  if (incoming.headers['transfer-encoding'] !== undefined) headers.push('Transfer-Encoding', 'chunked')
  if (upgrade !== undefined) headers.push('Connection', 'Upgrade', 'Upgrade', upgrade)
  else if (/\btrailers\b/i.test(String(incoming.headers.te ?? '')))
    headers.push('Connection', 'keep-alive, TE', 'TE', 'trailers')
  // The proxy closes the connection: a program that closes before it has read the body would reset its own answer.
  else headers.push('Connection', 'keep-alive')
  return headers
}

export function responseHeaders(answer: IncomingMessage, { setCookie, autoResumed }: Added): string[] {
  const headers: string[] = []
  for (const [name, value, lower] of endToEnd(answer)) {
    if (lower === 'set-cookie' && isOurCookie(value)) continue
    if (lower === AUTO_RESUMED.toLowerCase()) continue
    headers.push(name, value)
  }
  if (setCookie !== undefined) headers.push('Set-Cookie', setCookie)
  if (autoResumed) headers.push(AUTO_RESUMED, 'true')
  return headers
}

/** Includes Connection and Upgrade: the program has agreed to the protocol. */
export function upgradeHead(answer: IncomingMessage, added: Added): string {
  const headers = responseHeaders(answer, added)
  headers.push('Connection', 'Upgrade', 'Upgrade', answer.headers.upgrade ?? '')
  let head = `HTTP/1.1 101 ${answer.statusMessage || 'Switching Protocols'}\r\n`
  for (let i = 0; i < headers.length; i += 2) head += `${headers[i]}: ${headers[i + 1]}\r\n`
  return `${head}\r\n`
}

export function trailers({ rawTrailers }: IncomingMessage): [string, string][] {
  const found: [string, string][] = []
  for (let i = 0; i < rawTrailers.length; i += 2) {
    const lower = rawTrailers[i]!.toLowerCase()
    if (!HOP_BY_HOP.has(lower) && !NOT_TRAILERS.test(lower))
      found.push([rawTrailers[i]!, rawTrailers[i + 1]!])
  }
  return found
}

/** Name, value and lower-case name of each end-to-end header. */
function* endToEnd(message: IncomingMessage): Generator<[string, string, string]> {
  const { rawHeaders } = message
  const dropped = new Set(
    (message.headers.connection ?? '').split(',').map((name) => name.trim().toLowerCase()),
  )
  // Content-Length frames the body, even if Connection names it.
  dropped.delete('content-length')
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const lower = rawHeaders[i]!.toLowerCase()
    if (!HOP_BY_HOP.has(lower) && !dropped.has(lower)) yield [rawHeaders[i]!, rawHeaders[i + 1]!, lower]
  }
}
