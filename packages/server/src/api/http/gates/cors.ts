// A browser lets the pages of the named origins call this API; those of others it refuses, because no answer allows them. Callers show a
// key or token in a header, never a cookie, so a page can do only what its own key or token may. WebSockets need no leave of this kind.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { AUTO_RESUMED } from '@islet/contract'

const METHODS = 'GET, HEAD, POST, PUT, PATCH, DELETE'
const REQUEST_HEADERS = 'Authorization, Content-Type, Idempotency-Key, Last-Event-ID, Range, X-Request-Id'
const ANSWER_HEADERS = `${AUTO_RESUMED}, Content-Disposition, Content-Range, X-Request-Id`
const MAX_AGE_SECONDS = '600'

/** Sets the headers of an answer. True: it was only the question whether the page may ask, and is answered. */
export function createCors(
  origins: readonly string[],
): (incoming: IncomingMessage, outgoing: ServerResponse) => boolean {
  if (origins.length === 0) return () => false
  return (incoming, outgoing) => {
    const { origin } = incoming.headers
    outgoing.setHeader('Vary', 'Origin')
    if (origin === undefined || !origins.includes(origin)) return false
    outgoing.setHeader('Access-Control-Allow-Origin', origin)
    outgoing.setHeader('Access-Control-Expose-Headers', ANSWER_HEADERS)
    const isQuestion = incoming.method === 'OPTIONS' && incoming.headers['access-control-request-method']
    if (!isQuestion) return false
    outgoing.setHeader('Access-Control-Allow-Methods', METHODS)
    outgoing.setHeader('Access-Control-Allow-Headers', REQUEST_HEADERS)
    outgoing.setHeader('Access-Control-Max-Age', MAX_AGE_SECONDS)
    outgoing.writeHead(204).end()
    return true
  }
}
