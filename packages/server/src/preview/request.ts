// What a request must be like to be passed on.
import type { IncomingMessage } from 'node:http'
import { IsletError } from '@islet/contract'
import { targetOf } from '../listen/request.ts'

/** The target as a path, the form that servers take. */
export function checkRequest(incoming: IncomingMessage): string {
  if (!isPlainlyFramed(incoming)) throw new IsletError('bad_request', 'A body has a length or is chunked.')
  if (/[^\x21-\xff]/.test(incoming.url ?? ''))
    throw new IsletError('bad_request', 'The address of the request is not valid.')
  return targetOf(incoming)
}

/** No coding that we would have to take off. That there is not also a length is the parser's to see. */
export function isPlainlyFramed({ headers }: IncomingMessage): boolean {
  const coding = headers['transfer-encoding']
  return coding === undefined || coding.trim().toLowerCase() === 'chunked'
}

/** HTTP/2 in the clear would carry requests past us unread: who offers it gets HTTP/1.1. */
export function isUpgrade({ headers }: IncomingMessage): boolean {
  return headers.upgrade !== undefined && !/\bh2c\b/i.test(headers.upgrade)
}
