// Lets pages of the configured origins call this API from a browser. Callers send a key or token in a header, never a cookie, so a page
// can do only what its own key or token allows. CORS does not apply to WebSockets.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { AUTO_RESUMED, OUTPUT_OFFSET } from '@islet/contract'

const METHODS = 'GET, HEAD, POST, PUT, PATCH, DELETE'
const REQUEST_HEADERS = 'Authorization, Content-Type, Idempotency-Key, Last-Event-ID, Range, X-Request-Id'
const ANSWER_HEADERS = `${AUTO_RESUMED}, ${OUTPUT_OFFSET}, Content-Disposition, Content-Range, X-Request-Id`
const MAX_AGE_SECONDS = '600'

/** Sets the CORS headers. Returns true if the request was a preflight, which is then answered. */
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
