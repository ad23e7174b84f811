// Turns anything thrown into an error answer.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { type ErrorBody, IsletError } from '@islet/contract'
import type { Log } from '../../log.ts'
import { bodyIsOnItsWay } from './body.ts'
import { insideOf } from './caller.ts'
import { lingerAfterEnd } from './linger.ts'
import { loggedPath, requestIdOf } from './request.ts'

/** An error that is not an IsletError becomes `internal`; its text goes to the log only. */
export function asIsletError(error: unknown, requestId?: string): IsletError {
  if (error instanceof IsletError) return error
  return new IsletError('internal', undefined, { cause: error, ...(requestId && { details: { requestId } }) })
}

export function asErrorLine(error: unknown): { type: 'error'; error: ErrorBody['error'] } {
  return { type: 'error', error: asIsletError(error).toBody().error }
}

/** Headers that belong to an error. */
export function errorHeaders(error: IsletError): Record<string, string> {
  const { allow, sizeBytes } = (error.details ?? {}) as { allow?: string[]; sizeBytes?: number }
  switch (error.code) {
    case 'unauthorized':
      return { 'WWW-Authenticate': 'Bearer realm="islet"' }
    case 'method_not_allowed':
      return { Allow: (allow ?? []).join(', ') }
    case 'range_not_satisfiable':
      return sizeBytes === undefined ? {} : { 'Content-Range': `bytes */${sizeBytes}` }
    case 'draining':
      return { Connection: 'close', 'Retry-After': '1' }
    default:
      return {}
  }
}

export function sendError(
  thrown: unknown,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  log: Log,
): void {
  const error = asIsletError(thrown, requestIdOf(incoming))
  if (outgoing.destroyed || (incoming.destroyed && !incoming.complete)) {
    outgoing.destroy()
    return
  }
  logError(error, incoming, log)
  if (outgoing.headersSent) {
    // Part of the answer is sent: only a broken connection tells the client.
    outgoing.destroy()
    return
  }
  const headers = errorHeaders(error)
  if (bodyIsOnItsWay(incoming)) lingerAfterEnd(incoming, headers)
  const text = JSON.stringify(error.toBody())
  outgoing.writeHead(error.status, {
    'Content-Type': 'application/json',
    'Content-Length': Buffer.byteLength(text),
    ...headers,
  })
  outgoing.end(text)
}

export function logError(error: IsletError, incoming: IncomingMessage, log: Log): void {
  const fields = { requestId: requestIdOf(incoming), path: loggedPath(incoming) }
  if (error.code === 'internal') log.error({ ...fields, err: error.cause ?? error }, 'request failed')
  else if (error.status >= 500)
    log[insideOf(incoming) === undefined ? 'warn' : 'debug'](
      { ...fields, code: error.code, reason: error.message },
      'request failed',
    )
}
