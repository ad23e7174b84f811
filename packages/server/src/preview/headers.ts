// What of a message's head goes on to the other side. Names and values come from Node's strict parser, so none holds a line break.
import type { IncomingMessage } from 'node:http'
import { AUTO_RESUMED } from '@islet/contract'
import { type Admission, isOurCookie, withoutToken } from './auth.ts'

/** About one connection, not about the message: each side has its own. */
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
/** What a program may believe about its visitor is what we say, not what the visitor says. */
const FORWARDED = /^(forwarded|x-real-ip|x-forwarded-.*)$/
/** Not for trailers: they would change what was said before the body. */
const NOT_TRAILERS = /^(content-.*|host|authorization|cookie|set-cookie|cache-control|expect|range|location)$/

export interface Forwarded {
  scheme: 'http' | 'https'
  /** Of a request without one: HTTP/1.0. */
  defaultHost: string
}

/** What we say ourselves beside what the program answers. */
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
  // It is us who close: a program that did, before it has read all of a body, would take its answer back.
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

/** Also what Connection and Upgrade say: the other side has agreed to it. */
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

/** Name, value and lower-case name of each header that is about the message. */
function* endToEnd(message: IncomingMessage): Generator<[string, string, string]> {
  const { rawHeaders } = message
  const dropped = new Set(
    (message.headers.connection ?? '').split(',').map((name) => name.trim().toLowerCase()),
  )
  // The length is the frame of the body, whatever anybody says about it.
  dropped.delete('content-length')
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const lower = rawHeaders[i]!.toLowerCase()
    if (!HOP_BY_HOP.has(lower) && !dropped.has(lower)) yield [rawHeaders[i]!, rawHeaders[i + 1]!, lower]
  }
}
