// Error answers of previews: a page for browsers, the usual error body for programs.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import type { ErrorCode, IsletError } from '@islet/contract'
import { STATUS_CODES } from '../lib/http.ts'
import { MESSAGE_PAGE_HEADERS, messagePage } from '../lib/message-page.ts'

/** Codes whose status differs for a proxy from the API's table. */
const STATUS: Partial<Record<ErrorCode, number>> = {
  port_not_listening: 502,
  invalid_state: 503,
  limit_exceeded: 503,
  too_many_requests: 503,
}
/** How often the page of a temporary error reloads. */
const RETRY_SECONDS = 2
const END_MS = 2000

interface Page {
  status: number
  headers: Record<string, string>
  body: string
}

export function sendPage(error: IsletError, incoming: IncomingMessage, outgoing: ServerResponse): void {
  const { status, headers, body } = pageOf(error, incoming)
  outgoing.writeHead(status, headers)
  outgoing.end(body)
}

/** For a request that asked for another protocol: it has no response object. */
export function endWithPage(error: IsletError, incoming: IncomingMessage, socket: Duplex): void {
  const { status, headers, body } = pageOf(error, incoming)
  const lines = Object.entries({ ...headers, Connection: 'close' }).map(
    ([name, value]) => `${name}: ${value}`,
  )
  socket.write(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('\r\n')}\r\n\r\n${body}`)
  endSoon(socket)
}

/** Ends our side and drops input for a moment, so that the written bytes arrive; then destroys the connection. */
export function endSoon(socket: Duplex): void {
  socket.end()
  socket.resume()
  const timer = setTimeout(() => socket.destroy(), END_MS)
  socket.once('close', () => clearTimeout(timer))
}

function pageOf(error: IsletError, incoming: IncomingMessage): Page {
  const isGone = error.details?.status === 'stopped'
  const status = isGone ? 410 : (STATUS[error.code] ?? error.status)
  const isHtml = (incoming.headers.accept ?? '').includes('text/html')
  const retries = status >= 500 && status !== 500 && incoming.method === 'GET'
  const { message, hint } = error
  const foot = `${status} ${error.code} · Islet preview`
  const body = isHtml
    ? messagePage({ title: message, hint, foot, reloadSeconds: retries ? RETRY_SECONDS : undefined })
    : JSON.stringify(error.toBody())
  return {
    status,
    headers: {
      'Content-Type': 'application/json',
      'Content-Length': String(Buffer.byteLength(body)),
      'Cache-Control': 'no-store',
      'X-Content-Type-Options': 'nosniff',
      ...(isHtml && MESSAGE_PAGE_HEADERS),
      ...(status === 401 && { 'WWW-Authenticate': 'Bearer realm="islet preview"' }),
      ...(status === 503 && { 'Retry-After': String(RETRY_SECONDS) }),
    },
    body,
  }
}
