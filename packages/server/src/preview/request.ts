// Checks a request before it is passed on.
import type { IncomingMessage } from 'node:http'
import { IsletError } from '@islet/contract'
import { targetOf } from '../listen/request.ts'

/** Returns the request target as a path. */
export function checkRequest(incoming: IncomingMessage): string {
  if (!isPlainlyFramed(incoming)) throw new IsletError('bad_request', 'A body has a length or is chunked.')
  if (/[^\x21-\xff]/.test(incoming.url ?? ''))
    throw new IsletError('bad_request', 'The address of the request is not valid.')
  return targetOf(incoming)
}

/** No coding but `chunked`. Node's parser refuses a request that also has a length. */
export function isPlainlyFramed({ headers }: IncomingMessage): boolean {
  const coding = headers['transfer-encoding']
  return coding === undefined || coding.trim().toLowerCase() === 'chunked'
}

/** h2c would carry requests past the proxy's checks: a client that offers it gets HTTP/1.1. */
export function isUpgrade({ headers }: IncomingMessage): boolean {
  return headers.upgrade !== undefined && !/\bh2c\b/i.test(headers.upgrade)
}
