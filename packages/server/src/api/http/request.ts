// Helpers for Node's request and response.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { newId } from '@islet/contract'
import type { Log } from '../../log.ts'
import { insideOf } from './caller.ts'

const REQUEST_ID = Symbol('request id')
/** Also in the forms that the router does not know. */
const MAGIC = /\/auth\/+magic\//i
const REQUEST_ID_TEXT = /^[A-Za-z0-9._-]{1,128}$/

const COUNTED_CHARACTERS = 8
const PREFIX = newId('request').slice(0, -COUNTED_CHARACTERS)
let requests = 0

interface Marked extends IncomingMessage {
  [REQUEST_ID]?: string
}

/** The caller's X-Request-Id if it is valid, else a new one; the same for the life of the request. */
export function requestIdOf(incoming: IncomingMessage): string {
  const marked = incoming as Marked
  if (marked[REQUEST_ID]) return marked[REQUEST_ID]
  const given = incoming.headers['x-request-id']
  const id = typeof given === 'string' && REQUEST_ID_TEXT.test(given) ? given : newRequestId()
  marked[REQUEST_ID] = id
  return id
}

/** A random prefix per process and a counter: random bytes for every request would be slow. */
function newRequestId(): string {
  requests = (requests + 1) % 36 ** COUNTED_CHARACTERS
  return PREFIX + requests.toString(36).padStart(COUNTED_CHARACTERS, '0')
}

/** Without the query, which may hold secrets. */
export function pathOf(incoming: IncomingMessage): string {
  const url = incoming.url ?? '/'
  const end = url.search(/[?#]/)
  return end === -1 ? url : url.slice(0, end)
}

/** For logs: without the secret of a magic link. */
export function loggedPath(incoming: IncomingMessage): string {
  const path = pathOf(incoming)
  return MAGIC.test(path.includes('%') ? decoded(path) : path) ? '/auth/magic/…' : path
}

function decoded(path: string): string {
  return path.replace(/%([0-7][\da-f])/gi, (_, code: string) =>
    String.fromCharCode(Number.parseInt(code, 16)),
  )
}

/** Sets the headers of every response, and logs a line when it ends. */
export function begin(incoming: IncomingMessage, outgoing: ServerResponse, log: Log): void {
  const startedAt = performance.now()
  const requestId = requestIdOf(incoming)
  outgoing.setHeader('X-Request-Id', requestId)
  outgoing.setHeader('X-Content-Type-Options', 'nosniff')
  outgoing.setHeader('Cache-Control', 'no-store')
  outgoing.once('close', () => {
    const isQuiet =
      insideOf(incoming) !== undefined || incoming.url === '/health' || incoming.url === '/ready'
    const level = isQuiet ? 'debug' : 'info'
    if (!log.isLevelEnabled(level)) return
    const status = outgoing.writableFinished ? outgoing.statusCode : 'aborted'
    const durationMs = Math.round((performance.now() - startedAt) * 100) / 100
    log[level](
      { requestId, method: incoming.method, path: loggedPath(incoming), status, durationMs },
      'request',
    )
  })
}

/** Aborts when the connection ends before the response is finished. */
export function clientSignal(outgoing: ServerResponse): AbortSignal {
  const controller = new AbortController()
  const onClose = () => {
    if (!outgoing.writableFinished) controller.abort(clientGone())
  }
  if (outgoing.closed || outgoing.destroyed) onClose()
  else outgoing.once('close', onClose)
  return controller.signal
}

export function clientGone(): DOMException {
  return new DOMException('The client went away.', 'AbortError')
}
